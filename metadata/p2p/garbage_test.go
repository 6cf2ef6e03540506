package p2p

import (
	"encoding/hex"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/wire/ctrlframe"
)

// maxDelay is what a handshake may lose to other people's garbage.
const maxDelay = 10 * time.Millisecond

func TestR_INI_3_GarbageIsDroppedInTimeAndDelaysNobody(t *testing.T) {
	n := listenNode(t, func(o *Options) { o.Obs = obs.NewGroup() })
	publish(t, n, 100)
	before := handshakes(t, n)

	var crowd sync.WaitGroup
	drops := make(chan drop, 600)
	for kind, bytes := range garbage(t) {
		crowd.Go(func() { drops <- awaitDrop(t, n, kind, bytes, func() {}) })
	}
	var opened sync.WaitGroup
	start := time.Now()
	for range 500 {
		opened.Add(1)
		crowd.Go(func() { drops <- awaitDrop(t, n, "silent", nil, opened.Done) })
	}
	opened.Wait()
	eventually(t, func() bool { return sample(n, "connections") >= 500 })
	opening := time.Since(start) // some 20 ms, unless the machine is busy with other things
	late := lateness(promise)
	during := handshakes(t, n)
	if left := sample(n, "connections"); left < 500 {
		t.Errorf("only %d silent connections were open: the measurement shows nothing", left)
	}
	if delay := during - before; delay > maxDelay {
		t.Errorf("a handshake took %v, with garbage around %v", before, during)
	}
	t.Logf("median of a handshake: %v, with garbage around %v", before, during)

	crowd.Wait()
	close(drops)
	limit := promise + opening + <-late
	for d := range drops {
		if d.after > limit {
			t.Errorf("%s: dropped after %v, limit %v", d.kind, d.after, limit)
		}
	}
}

// drop tells when the port ended a connection.
type drop struct {
	kind  string
	after time.Duration
}

// lateness tells by how much a timer of that time is late: what a busy machine adds to all times.
func lateness(d time.Duration) chan time.Duration {
	late := make(chan time.Duration, 1)
	start := time.Now()
	time.AfterFunc(d, func() { late <- time.Since(start) - d })
	return late
}

// garbage is what reaches open ports.
func garbage(t *testing.T) map[string][]byte {
	hello, err := hex.DecodeString("16030100c8010000c40303") // the record of a TLS hello announces 200 bytes
	if err != nil {
		t.Fatal(err)
	}
	random := make([]byte, 4096)
	source := rand.NewChaCha8([32]byte{1})
	source.Read(random)
	return map[string][]byte{
		"HTTP":             []byte("GET /metadata?key=x HTTP/1.1\r\nHost: localhost:15000\r\n\r\n"),
		"TLS hello":        append(hello, random[:189]...),
		"random bytes":     random,
		"few random bytes": random[:5],
		"SSH":              []byte("SSH-2.0-OpenSSH_9.2\r\n"),
		"half a frame":     frame(ctrlframe.Notify, `{"name":"a"}`)[:15],
		"absurd length":    {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"length above all": {1, 0, 0, 8, 0, 0, 0, 0, 1},
		"largest length":   {0, 0, 0, 8, 0, 0, 0, 0, 2, '{'},
	}
}

// awaitDrop sends bytes and waits until the port ends the connection, which it has to do without an
// answer.
func awaitDrop(t *testing.T, n *Node, kind string, bytes []byte, opened func()) drop {
	conn, err := net.Dial("tcp", n.Name())
	opened()
	if err != nil {
		t.Errorf("%s: %v", kind, err)
		return drop{kind: kind}
	}
	defer conn.Close()
	start := time.Now()
	conn.SetDeadline(start.Add(testLimit))
	conn.Write(bytes)
	got, err := io.ReadAll(conn)
	if err != nil && !isReset(err) || len(got) > 0 {
		t.Errorf("%s: got %q, %v", kind, got, err)
	}
	return drop{kind, time.Since(start)}
}

// handshakes returns the median time of a metadata exchange.
func handshakes(t *testing.T, n *Node) time.Duration {
	t.Helper()
	var times []time.Duration
	for range 51 {
		start := time.Now()
		conn := dial(t, n)
		send(t, conn, frame(ctrlframe.Metadata, "{}"))
		if _, err := ctrlframe.Read(conn, ctrlframe.DefaultLimit); err != nil {
			t.Fatal(err)
		}
		conn.Close()
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times[len(times)/2]
}
