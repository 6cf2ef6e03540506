package tcp

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

func TestVersion1PeersAreServed(t *testing.T) {
	for _, x := range []struct {
		name      string
		version   int
		force     string
		certainty xfer.Certainty
		reuse     bool
	}{
		{"version 1", 1, "2", xfer.Confirmed, true},
		{"version 2, forced to 1", 2, "1", xfer.Confirmed, true},
		{"no version", 0, "2", xfer.Unconfirmed, false},
		{"no version, forced to 1", 0, "1", xfer.Unconfirmed, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			g := &target{version: 1, once: !x.reuse}
			srv := listenRaw(t, g.serve)
			h := openHost(t, "tcp.protocol", x.force)
			m := h.memory(8<<20, false)
			pattern(m.Bytes(), 1)
			_, s := h.dial(srv.desc(x.version, 0))
			requests := int32(0)
			for _, n := range []uint64{1, 2, 100, 65536, 1<<20 + 5} {
				w := write(m, 0, n, remoteBase+3)
				s.do(w)
				if w.certainty != x.certainty {
					t.Errorf("a write of %d bytes is %v", n, w.certainty)
				}
				eventually(t, "the bytes are there", func() bool { return bytes.Equal(g.load(remoteBase+3, n), m.Bytes()[:n]) })
				clear(m.Bytes()[4<<20 : 4<<20+n])
				r := read(m, 4<<20, n, remoteBase+3)
				s.do(r)
				if !bytes.Equal(r.memory(), w.memory()) || r.certainty != xfer.Confirmed {
					t.Errorf("a read of %d bytes is wrong (%v)", n, r.certainty)
				}
				requests += 2 * int32((n+pieceBytes-1)/pieceBytes)
			}
			// The connection that was made first may find no work.
			if got := srv.accepted.Load(); x.reuse && got > int32(h.tr.opt.lanes) || !x.reuse && got != requests && got != requests+1 {
				t.Errorf("%d connections for %d requests", got, requests)
			}
		})
	}
}

// TestAVersion1WriteIsReadBackOnItsConnection: its last byte, and nothing else.
func TestAVersion1WriteIsReadBackOnItsConnection(t *testing.T) {
	var headers []tcpframe.Header
	srv := listenRaw(t, func(c *conn) {
		for {
			h, _, ok := c.header()
			if !ok {
				return
			}
			headers = append(headers, h)
			if h.Opcode == v1Write {
				c.payload(h.Size)
			} else {
				c.put(make([]byte, h.Size))
			}
		}
	})
	h := openHost(t, "tcp.lanes", "1")
	m := h.memory(4096, false)
	_, s := h.dial(srv.desc(1, 0))
	s.do(write(m, 0, 100, remoteBase))
	want := []tcpframe.Header{{Size: 100, Addr: remoteBase, Opcode: v1Write}, {Size: 1, Addr: remoteBase + 99, Opcode: v1Read}}
	if fmt.Sprint(headers) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", headers, want)
	}
}

func TestAVersion1PeerRefusesByClosing(t *testing.T) {
	for _, x := range []struct {
		version int
		force   string
	}{{1, "2"}, {2, "1"}, {0, "2"}} {
		t.Run(fmt.Sprintf("version %d, newest %s", x.version, x.force), func(t *testing.T) {
			g := &target{version: 1, once: x.version == 0, refuse: func(addr uint64) bool { return addr >= remoteBase+1<<20 }}
			srv := listenRaw(t, g.serve)
			h := openHost(t, "tcp.protocol", x.force)
			m := h.memory(8<<20, false)
			_, s := h.dial(srv.desc(x.version, 0))
			bad := []*task{read(m, 0, 100, remoteBase+2<<20), read(m, 0, 100000, remoteBase+2<<20)}
			if x.version > 0 { // without a second request on the connection nobody notices
				bad = append(bad, write(m, 0, 100, remoteBase+2<<20))
			}
			for _, k := range bad {
				s.submit(k)
				s.finish(k)
				if codeOf(k.fault) != xfer.Refused {
					t.Errorf("%s of %d bytes: %v", k.op, k.len, k.fault)
				}
				s.do(read(m, 0, 100, remoteBase), write(m, 0, 100, remoteBase))
			}
		})
	}
}

// TestTheFirstConnectionMayHaveBeenClosedBeforeItsFirstWrite: a peer without version confirms nothing, so the write
// would be lost.
func TestTheFirstConnectionMayHaveBeenClosedBeforeItsFirstWrite(t *testing.T) {
	g := &target{version: 1, once: true}
	srv := listenRaw(t, func(c *conn) {
		if c.number > 1 {
			g.serve(c)
			return
		}
		c.CloseWrite() // its reset, after the first write, would be on its way for a while
		c.stand()
	})
	h := openHost(t, "tcp.lanes", "1")
	m := h.memory(4096, false)
	pattern(m.Bytes(), 1)
	_, s := h.dial(srv.desc(0, 0))
	eventually(t, "the end has come", func() bool { return s.route.serial[0].closedByPeer(t) })
	k := write(m, 0, 100, remoteBase)
	s.do(k)
	eventually(t, "the bytes are there", func() bool { return bytes.Equal(g.load(remoteBase, 100), k.memory()) })
}

func (s *serial) closedByPeer(t *testing.T) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link.conn == nil {
		return false
	}
	raw, err := s.link.conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	n := -1
	if err := raw.Control(func(fd uintptr) {
		n, _, _ = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	}); err != nil {
		t.Fatal(err)
	}
	return n == 0
}

// TestAnIdleVersion1ConnectionThatWasClosedLosesNoWrite: published initiators report such a write as done.
func TestAnIdleVersion1ConnectionThatWasClosedLosesNoWrite(t *testing.T) {
	g := &target{version: 1, once: true} // it closes after each exchange although it does not say so
	srv := listenRaw(t, g.serve)
	h := openHost(t)
	m := h.memory(4096, false)
	_, s := h.dial(srv.desc(1, 0))
	for i := range uint64(20) {
		pattern(m.Bytes(), i)
		r := read(m, 1000, 100, remoteBase)
		s.do(r) // leaves a connection behind that the peer closes
		k := write(m, 0, 100, remoteBase+200)
		s.submit(k)
		s.finish(k)
		if k.fault == nil && !bytes.Equal(g.load(k.remote, k.len), k.memory()) {
			t.Fatal("a write that completed is not there")
		}
	}
}

func TestASerialConnectionThatWasClosedWhileIdleCostsNoRequest(t *testing.T) {
	for _, version := range []int{1, 2} {
		g := &target{version: version}
		srv, d := g.start(t)
		h := openHost(t, "tcp.lanes", "1")
		m := h.memory(4096, false)
		_, s := h.dial(d)
		for range 20 {
			s.do(read(m, 0, 100, remoteBase).suspect(), write(m, 0, 100, remoteBase).suspect())
			srv.closeAll()
		}
	}
}

// TestARejectionWhileASuspectIsStillSent: the peer refuses a large write and resets the connection, or stops.
func TestARejectionWhileASuspectIsStillSent(t *testing.T) {
	for how, end := range map[string]func(c *conn){
		"close":  func(c *conn) {},
		"stands": func(c *conn) { c.stand() },
	} {
		t.Run(how, func(t *testing.T) {
			srv := listenRaw(t, func(c *conn) {
				c.header()
				c.put(status(tcpframe.AddressRejected))
				end(c)
			})
			h := openHost(t, "tcp.lanes", "1", "tcp.status_timeout", "300ms")
			m := h.memory(32<<20, false)
			_, s := h.dial(srv.desc(2, 0))
			k := write(m, 0, 32<<20, remoteBase).suspect()
			begin := time.Now()
			s.submit(k)
			s.finish(k)
			if code := codeOf(k.fault); code != xfer.Refused {
				t.Errorf("got %v", k.fault)
			}
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestASilentPeerEndsASerialRequestInTime(t *testing.T) {
	for _, version := range []int{1, 2} {
		srv := listenRaw(t, func(c *conn) { c.stand() })
		h := openHost(t, "tcp.lanes", "1", "tcp.progress_timeout", "200ms")
		m := h.memory(16<<20, false)
		_, s := h.dial(srv.desc(version, 0))
		for _, k := range []*task{aRead(m).suspect(), aWrite(m).suspect()} {
			s.submit(k)
			s.finish(k)
			if codeOf(k.fault) != xfer.Deadline || (k.certainty == xfer.Unknown) != (k.op == xfer.Write) {
				t.Errorf("version %d, %s: %v (%v)", version, k.op, k.fault, k.certainty)
			}
		}
	}
}

// TestARequestOutlivesAConnectionThatEndsUnderIt: the second attempt, on a new connection, is answered.
func TestARequestOutlivesAConnectionThatEndsUnderIt(t *testing.T) {
	for _, version := range []int{1, 2} {
		for _, op := range []xfer.Op{xfer.Write, xfer.Read} {
			t.Run(fmt.Sprintf("version %d, %s", version, op), func(t *testing.T) {
				g := &target{version: version}
				srv := listenRaw(t, func(c *conn) {
					if c.number <= version { // version 2 has a lane besides
						c.header()
						c.reset()
						return
					}
					g.serve(c)
				})
				h := openHost(t, "tcp.lanes", "1")
				m := h.memory(4096, false)
				pattern(m.Bytes(), 1)
				_, s := h.dial(srv.desc(version, 0))
				k := newTask(op, m, 0, 100, remoteBase).suspect()
				s.do(k)
				if n := g.times(remoteBase); n != 1 {
					t.Errorf("it was executed %d times", n)
				}
			})
		}
	}
}

func TestAPeerThatEndsEveryConnectionIsNotAskedForEachRequest(t *testing.T) {
	srv := listenRaw(t, func(c *conn) { c.header() })
	h := openHost(t)
	m := h.memory(1<<20, false)
	_, s := h.dial(srv.desc(2, 0))
	var ks []*task
	for i := range uint64(200) {
		ks = append(ks, write(m, i*8, 8, remoteBase+i*8))
	}
	s.submit(ks...)
	for _, k := range ks {
		within(t, k.ended, "the end of a request")
		if codeOf(k.fault) != xfer.Socket {
			t.Fatalf("it ended with %v", k.fault)
		}
	}
	if got := srv.accepted.Load(); got > 40 {
		t.Errorf("%d connections for %d requests", got, len(ks))
	}
}
