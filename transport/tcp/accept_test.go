package tcp

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/wire/tcpframe"
)

// TestOnlyAPartOfAHeaderHasATimeLimit: published initiators keep idle connections for ever.
func TestOnlyAPartOfAHeaderHasATimeLimit(t *testing.T) {
	t.Parallel()
	h, r, used := served(t, 4096)
	used.works(uint64(r.Addr))
	fresh := h.client()
	greeted := h.client()
	greeted.hello(h, tcpframe.FeatureDrain)
	var partial []*client
	begin := time.Now()
	for _, n := range []int{1, 8, 23} {
		c := h.client()
		c.send(readRequest(uint64(r.Addr), 4)[:n])
		partial = append(partial, c)
	}
	behind := h.client() // part of a header behind a whole request
	behind.send(readRequest(uint64(r.Addr), 4), []byte{1, 2, 3})
	behind.expect(ok, r.Bytes()[:4])
	inTwo := h.client() // the limit is for the header, not for what comes after it
	inTwo.send(readRequest(uint64(r.Addr), 4)[:9])
	inTwo.expectSilence(50 * time.Millisecond)
	inTwo.send(readRequest(uint64(r.Addr), 4)[9:])
	inTwo.expect(ok, r.Bytes()[:4])
	for _, c := range append(partial, behind) {
		c.expectEndWithin(2 * partialHeader)
	}
	if took := time.Since(begin); took < partialHeader/2 {
		t.Errorf("partial headers were dropped after %v", took)
	}
	fresh.expectSilence(partialHeader / 2)
	for _, c := range []*client{fresh, used, greeted, inTwo} {
		c.works(uint64(r.Addr))
	}
}

// TestASlowHeaderCannotHoldAConnection: one byte now and then does not extend the limit.
func TestASlowHeaderCannotHoldAConnection(t *testing.T) {
	t.Parallel()
	_, r, c := served(t, 4096)
	request := readRequest(uint64(r.Addr), 4)
	tick := time.NewTicker(partialHeader / 10)
	defer tick.Stop()
	for i := range tcpframe.HeaderLen - 1 {
		if _, err := c.c.Write(request[i : i+1]); err != nil {
			break
		}
		<-tick.C
		if i == 11 { // after more than the limit
			break
		}
	}
	c.expectEndWithin(partialHeader / 2)
}

func TestGarbageIsDroppedAndDisturbsNobody(t *testing.T) {
	h := openHost(t)
	r := h.memory(4096, true)
	pattern(r.Bytes(), 1)
	before := bytes.Clone(r.Bytes())
	other := h.client()
	noise := rand.New(rand.NewPCG(1, 2))
	inputs := [][]byte{
		[]byte("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: test\r\n\r\n"),
		[]byte("POST /api/v1/very/long/path HTTP/1.1\r\nContent-Length: 10000000\r\n\r\n"),
		unhex(t, "16030100c8010000c40303"+"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"), // a TLS hello
		bytes.Repeat([]byte{0xff}, 1000),
		make([]byte, 1000),
		[]byte("SSH-2.0-OpenSSH_9.2p1 Debian\r\n"),
		slices.Repeat([]byte("*1\r\n$4\r\nPING\r\n"), 3),
	}
	for range 200 {
		b := make([]byte, 24+noise.IntN(2000))
		for i := range b {
			b[i] = byte(noise.Uint32())
		}
		inputs = append(inputs, b)
	}
	for i, in := range inputs {
		c := h.client()
		_ = c.c.SetDeadline(time.Now().Add(patience))
		_, _ = c.c.Write(in) // may be cut off
		_ = c.c.CloseWrite()
		got, _ := io.ReadAll(c.c)
		if len(got) > 0 && !bytes.Equal(got, status(tcpframe.AddressRejected)) {
			t.Errorf("input %d: answer % x", i, got[:min(len(got), 32)])
		}
		c.c.Close()
		if i%20 == 0 {
			other.send(readRequest(uint64(r.Addr), 100))
			other.expect(ok, before[:100])
		}
	}
	if !bytes.Equal(r.Bytes(), before) {
		t.Error("garbage changed memory")
	}
}

func TestTooManyConnectionsAreRefusedAndIdleOnesKept(t *testing.T) {
	h := openHost(t, "tcp.max_inbound", "3")
	r := h.memory(4096, true)
	var kept []*client
	for range 3 {
		c := h.client()
		c.works(uint64(r.Addr))
		kept = append(kept, c)
	}
	for range 10 {
		c, err := net.Dial("tcp", address("127.0.0.1", h.tr.Port()))
		if err == nil { // else the reset came before dialing was over
			(&client{t, c.(*net.TCPConn)}).expectEnd()
			c.Close()
		}
	}
	for _, c := range kept {
		c.works(uint64(r.Addr))
	}
	if got := h.counter("", "sessions_refused"); got != 10 {
		t.Errorf("%d refused sessions counted, want 10", got)
	}
	kept[0].c.Close()
	eventually(t, "one session less", func() bool { return len(h.tr.accept.all()) == 2 })
	h.client().works(uint64(r.Addr))
}

// TestAFullPeerServesWhatIsConnected: it refuses all connections but one, which then does everything.
func TestAFullPeerServesWhatIsConnected(t *testing.T) {
	there, here := openHost(t, "tcp.max_inbound", "1"), openHost(t)
	remote, m := there.memory(8<<20, true), here.memory(8<<20, false)
	_, s := here.dial(there.desc())
	s.do(write(m, 0, 100, uint64(remote.Addr)))
	for range 5 {
		s.do(write(m, 0, 8<<20, uint64(remote.Addr)), read(m, 0, 4<<20, uint64(remote.Addr)), read(m, 0, 10, uint64(remote.Addr)))
	}
}

func TestCloseEndsIdleSessionsAtOnceAndFinishesExchanges(t *testing.T) {
	h, r, idle := served(t, 1<<20)
	idle.works(uint64(r.Addr))
	fresh := h.client()
	busy := h.client()
	payload := patterned(1<<20, 3)
	busy.send(frame(1<<20, uint64(r.Addr), v2Write), payload[:1000])
	eventually(t, "the exchange begins", func() bool { return h.busy() == 1 })
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		h.tr.accept.close(ctx)
	}()
	idle.expectEnd()
	fresh.expectEnd()
	always(t, 20*time.Millisecond, "closed in the middle of an exchange", func() bool {
		select {
		case <-closed:
			return false
		default:
			return true
		}
	})
	busy.send(payload[1000:])
	busy.expect(ok)
	busy.expectEndWithin(patience / 2) // by itself, and not with the context
	within(t, closed, "the end")
	if !bytes.Equal(r.Bytes(), payload) {
		t.Error("payload differs")
	}
}

func TestCloseEndsWhatDoesNotFinishWithItsContext(t *testing.T) {
	h, r, c := served(t, 32<<20)
	c.send(frame(1<<20, uint64(r.Addr), v2Write), make([]byte, 1000))
	stuck := h.client()
	stuck.send(readRequest(uint64(r.Addr), 32<<20))
	eventually(t, "both are under way", func() bool { return h.busy() == 2 })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	h.tr.accept.close(ctx)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	c.expectEnd()
	if !h.unregister(r, patience) {
		t.Error("the region is still held")
	}
}
