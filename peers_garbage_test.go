package moonpath_test

import (
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
)

// garbage is what reaches open ports from scanners, load balancers and people who mistook a port.
func garbage() map[string][]byte {
	random := make([]byte, 4096)
	rand.NewChaCha8([32]byte{1}).Read(random)
	return map[string][]byte{
		"HTTP":             []byte("GET /metadata?key=x HTTP/1.1\r\nHost: localhost:15000\r\nUser-Agent: curl\r\n\r\n"),
		"TLS hello":        append([]byte{0x16, 3, 1, 0, 0xc8, 1, 0, 0, 0xc4, 3, 3}, random[:189]...),
		"SSH":              []byte("SSH-2.0-OpenSSH_9.2\r\n"),
		"random bytes":     random,
		"few random bytes": random[:5],
		"zeros":            make([]byte, 4096),
		"ones":             slices.Repeat([]byte{0xff}, 4096),
	}
}

// TestR_INI_3_GarbageOnAnyPortIsDroppedAndDelaysNobody sends garbage to the control port and to the data port, and leaves
// the connections open. Meanwhile others shake hands with both.
func TestR_INI_3_GarbageOnAnyPortIsDroppedAndDelaysNobody(t *testing.T) {
	const promise, margin, delay, each = 2 * time.Second, 500 * time.Millisecond, 10 * time.Millisecond, 8
	e, other := openEngine(t, nil), openEngine(t, nil)
	ports := map[string]int{"control": e.GetRPCPort(), "data": dataPort(t, e)}
	quiet := handshakeTimes(t, e, other)
	var crowd sync.WaitGroup
	for port, number := range ports {
		for kind, bytes := range garbage() {
			for range each {
				crowd.Go(func() {
					c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(number)))
					if err != nil {
						t.Error(err)
						return
					}
					defer c.Close()
					start := time.Now()
					c.SetDeadline(start.Add(10 * time.Second))
					c.Write(bytes)
					io.Copy(io.Discard, c)
					if took := time.Since(start); took > promise+margin {
						t.Errorf("%s port: %s was dropped after %v, want at most %v", port, kind, took, promise)
					}
				})
			}
		}
	}
	loud := handshakeTimes(t, e, other)
	crowd.Wait()
	for port := range ports {
		t.Logf("%s port: a handshake takes %v, with garbage around %v (medians)", port, quiet[port], loud[port])
		if loud[port]-quiet[port] > delay {
			t.Errorf("%s port: a handshake takes %v, with garbage around %v", port, quiet[port], loud[port])
		}
	}
}

// handshakeTimes are medians of a question at the control port and of a hello at the data port, each with its connection.
func handshakeTimes(t *testing.T, e, other *moonpath.Engine) map[string]time.Duration {
	t.Helper()
	const rounds = 51
	d, err := e.Segment(moonpath.LocalSegment)
	if err != nil {
		t.Fatal(err)
	}
	median := func(shake func() error) time.Duration {
		var took []time.Duration
		for range rounds {
			start := time.Now()
			if err := shake(); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		return took[rounds/2]
	}
	return map[string]time.Duration{
		"control": median(func() error { return other.Probe(t.Context(), e.Name()) }),
		"data": median(func() error {
			c, err := net.Dial("tcp", d.TCP.Address())
			if err != nil {
				return err
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(10 * time.Second))
			var frame [tcpframe.HeaderLen]byte
			tcpframe.PutHello(&frame, tcpframe.Hello{Incarnation: d.Ext.Incarnation, MaxVersion: tcpframe.HelloVersion, MinVersion: tcpframe.HelloVersion})
			if _, err := c.Write(frame[:]); err != nil {
				return err
			}
			_, err = io.ReadFull(c, make([]byte, tcpframe.HelloAnswerLen))
			return err
		}),
	}
}
