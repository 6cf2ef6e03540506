package tcp

import (
	"bytes"
	"context"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/wire/tcpframe"
)

// TestOneExchangePerConnectionNeedsNoGoroutine: published initiators open a connection for every request.
func TestOneExchangePerConnectionNeedsNoGoroutine(t *testing.T) {
	h := openHost(t)
	r := h.memory(freshLimit, true)
	before, open := runtime.NumGoroutine(), sockets(t)
	var cs []*client
	for i := range uint64(50) {
		if len(cs) == frontCrowd { // more at once get goroutines
			for _, c := range cs {
				c.expectSilence(time.Millisecond) // idle connections stay open
				c.c.Close()
			}
			cs = nil
			eventually(t, "the sessions end", func() bool { return len(h.tr.accept.all()) == 0 })
		}
		payload := patterned(freshLimit, i)
		c := h.client()
		c.send(writeRequest(uint64(r.Addr), payload))
		c.expect(ok)
		d := h.client()
		d.send(readRequest(uint64(r.Addr), freshLimit))
		d.expect(ok, payload)
		cs = append(cs, c, d)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines with %d connections, %d without", n, len(cs), before)
	}
	var crowd []*client
	for range 2 * frontCrowd {
		crowd = append(crowd, h.client())
	}
	for _, c := range append(cs, crowd...) {
		c.works(uint64(r.Addr)) // whoever serves it
	}
	for _, c := range append(cs, crowd...) {
		c.c.Close()
	}
	eventually(t, "all sessions end", func() bool { return len(h.tr.accept.all()) == 0 })
	if n := sockets(t); n > open {
		t.Errorf("%d sockets left, %d before", n, open)
	}
}

// TestConnectionsAreServedOnAfterTheFirstExchange: whatever comes second, and however it comes.
func TestConnectionsAreServedOnAfterTheFirstExchange(t *testing.T) {
	h := openHost(t)
	r := h.memory(1<<20, true)
	a := uint64(r.Addr)
	small, large := patterned(1000, 1), patterned(1<<20, 2)
	pattern(r.Bytes(), 3)
	for name, steps := range map[string]func(c *client){
		"a second one": func(c *client) {
			c.send(readRequest(a, 100))
			c.expect(ok, r.Bytes()[:100])
			c.works(a)
		},
		"two at once": func(c *client) {
			c.send(writeRequest(a, small), readRequest(a, 1000))
			c.expect(ok, ok, small)
			c.works(a)
		},
		"one and a part of the next": func(c *client) {
			next := writeRequest(a, small)
			c.send(readRequest(a, 5), next[:10])
			c.expect(ok, r.Bytes()[:5])
			c.send(next[10:])
			c.expect(ok)
			c.works(a)
		},
		"a payload in parts": func(c *client) {
			whole := writeRequest(a, small)
			for _, part := range [][]byte{whole[:24], whole[24:25], whole[25:600], whole[600:]} {
				c.expectSilence(5 * time.Millisecond)
				c.send(part)
			}
			c.expect(ok)
			c.works(a)
		},
		"a header in parts": func(c *client) {
			whole := writeRequest(a, small)
			c.send(whole[:7])
			c.expectSilence(5 * time.Millisecond)
			c.send(whole[7:])
			c.expect(ok)
			c.works(a)
		},
		"a large one": func(c *client) {
			c.send(writeRequest(a, large), readRequest(a, 1<<20))
			c.expect(ok, ok, large)
			c.works(a)
		},
		"version 1": func(c *client) {
			c.send(frame(1000, a, v1Write), small)
			c.send(readRequest(a, 1000)) // version 1 has no answer to a write
			c.expect(ok, small)
			c.works(a)
		},
		"a hello": func(c *client) {
			c.hello(h, tcpframe.FeatureDrain)
			c.works(a)
		},
		"a late hello": func(c *client) {
			c.works(a)
			c.send(helloFrame(h.env.Incarnation, 1, 1, 0))
			c.expect(status(tcpframe.AddressRejected))
			c.expectEnd()
		},
		"a refusal": func(c *client) {
			c.send(readRequest(a-1, 5), readRequest(a, 5))
			c.expect(status(tcpframe.AddressRejected))
			c.expectEnd()
		},
	} {
		t.Run(name, func(t *testing.T) { steps(h.clientOf(t)) })
	}
}

// TestAcceptedConnectionsInheritTheirOptions: setting them one by one would cost every connection as many calls.
func TestAcceptedConnectionsInheritTheirOptions(t *testing.T) {
	h := openHost(t)
	r := h.memory(4096, true)
	check := func(when string) {
		ss := h.tr.accept.all()
		if len(ss) != 1 {
			t.Fatalf("%s: %d sessions", when, len(ss))
		}
		s := ss[0]
		s.connMu.Lock()
		defer s.connMu.Unlock()
		fd := s.fd
		if s.conn != nil {
			raw, err := s.conn.SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			_ = raw.Control(func(u uintptr) { fd = int(u) })
		}
		for _, o := range []struct {
			name              string
			level, opt, value int
		}{
			{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
			{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15},
			{"TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 5},
			{"TCP_KEEPCNT", unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3},
			{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 30000},
		} {
			if got, err := unix.GetsockoptInt(fd, o.level, o.opt); err != nil || got != o.value {
				t.Errorf("%s: %s is %d, %v; want %d", when, o.name, got, err, o.value)
			}
		}
		if got, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION); err != nil || got != unpaced {
			t.Errorf("%s: congestion control is %q, %v; want %s", when, got, err, unpaced)
		}
	}
	c := h.client()
	c.send(readRequest(uint64(r.Addr), 4))
	c.expect(ok, r.Bytes()[:4])
	check("after one exchange")
	c.works(uint64(r.Addr))
	check("after more")
}

// TestASilentConnectionIsAcceptedAndLives, although the kernel holds it back at first.
func TestASilentConnectionIsAcceptedAndLives(t *testing.T) {
	t.Parallel()
	h, r, _ := served(t, 4096)
	c := h.client()
	eventually(t, "it is accepted", func() bool { return len(h.tr.accept.all()) == 2 })
	c.works(uint64(r.Addr))
}

func TestClosingFinishesAFirstExchangeThatIsUnderWay(t *testing.T) {
	h := openHost(t)
	r := h.memory(4096, true)
	idle, busy := h.client(), h.client()
	idle.send(readRequest(uint64(r.Addr), 4))
	idle.expect(ok, r.Bytes()[:4])
	eventually(t, "the first session is idle", func() bool { return h.busy() == 0 })
	payload := patterned(1000, 7)
	whole := writeRequest(uint64(r.Addr), payload)
	busy.send(whole[:500])
	eventually(t, "half a payload has come", func() bool { return h.busy() == 1 })
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = h.tr.Close(ctx)
	}()
	idle.expectEnd()
	busy.send(whole[500:])
	busy.expect(ok)
	busy.expectEnd()
	within(t, closed, "close")
	if !bytes.Equal(r.Bytes()[:1000], payload) {
		t.Error("the payload is not there")
	}
}
