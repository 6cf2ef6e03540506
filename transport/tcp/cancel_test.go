package tcp

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// TestCanceledRequestsLeaveLocalMemoryAlone: queued, half sent and sent ones, both ways, with neighbours that
// complete. Memory is poisoned when the terminal status is there.
func TestCanceledRequestsLeaveLocalMemoryAlone(t *testing.T) {
	for name, incarnation := range kinds {
		// In a narrow socket most requests have not been sent when they are canceled, in a wide one all have.
		for _, x := range []struct {
			size   uint64
			narrow bool
		}{{50, false}, {4096, false}, {4096, true}, {16000, false}, {16000, true}, {200000, false}, {200000, true}} {
			size := x.size
			t.Run(fmt.Sprintf("%s, %d bytes, narrow: %v", name, size, x.narrow), func(t *testing.T) {
				release := make(chan struct{})
				held := make(chan struct{}, 10000)
				g := &target{version: 2, incarnation: incarnation}
				g.before = func(tcpframe.Header) bool {
					held <- struct{}{}
					<-release
					return true
				}
				_, d := g.start(t)
				stored := patterned(4<<20, 9)
				g.store(remoteBase+32<<20, stored)
				h := openHost(t, "tcp.lanes", "1")
				m := h.memory(32<<20, false)
				pattern(m.Bytes(), 8)
				_, s := h.dial(d)
				if x.narrow {
					s.narrow()
				}
				const n = 120
				var ks []*task
				for i := range uint64(n) {
					if i%3 == 0 {
						ks = append(ks, write(m, i*size, size, remoteBase+i*size))
					} else {
						ks = append(ks, read(m, i*size, size, remoteBase+32<<20+i*100))
					}
				}
				s.submit(ks...)
				within(t, held, "a request at the peer")
				var canceled, kept []*task
				for i, k := range ks {
					if i%2 == 0 {
						canceled = append(canceled, k)
					} else {
						kept = append(kept, k)
					}
				}
				s.drop(canceled...)
				s.route.Cancel(s.refs(canceled...))
				poisoned := make(map[*task]bool)
				for _, k := range canceled {
					if k.over() {
						pattern(k.memory(), 666)
						poisoned[k] = true
					}
				}
				if len(poisoned) < len(canceled)-1 { // one may be half sent
					t.Errorf("%d of %d canceled requests ended", len(poisoned), len(canceled))
				}
				close(release)
				s.finish(ks...)
				for i, k := range kept {
					if k.fault != nil {
						t.Fatalf("request %d was not canceled and failed: %v", i, k.fault)
					}
					if !bytes.Equal(g.load(k.remote, size), k.memory()) {
						t.Fatalf("request %d was not canceled and has wrong bytes", i)
					}
				}
				for _, k := range canceled {
					switch {
					case !poisoned[k]:
					case codeOf(k.fault) != xfer.Interrupted:
						t.Fatalf("a canceled request ended with %v", k.fault)
					case !bytes.Equal(k.memory(), patterned(int(size), 666)):
						t.Fatal("local memory was touched after the end of its request")
					}
				}
			})
		}
	}
}

// drop takes queued tasks out, as an engine does before it cancels what is out.
func (s *source) drop(ks ...*task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for q := range s.queues {
		s.queues[q] = slices.DeleteFunc(s.queues[q], func(k *task) bool {
			if !slices.Contains(ks, k) {
				return false
			}
			if k.fault == nil {
				k.fault = &xfer.Fault{Code: xfer.Interrupted, Stage: xfer.StageSend, Path: Name, Detail: "canceled"}
			}
			if k.left -= k.len - k.cut; k.left == 0 {
				close(k.ended)
			}
			return true
		})
	}
}

func TestWhatACanceledWriteLeavesAtThePeerIsSaid(t *testing.T) {
	release, held := make(chan struct{}), make(chan struct{}, 1000)
	g := &target{version: 2, before: func(tcpframe.Header) bool { held <- struct{}{}; <-release; return true }}
	_, d := g.start(t)
	h := openHost(t, "tcp.lanes", "1")
	m := h.memory(1<<20, false)
	_, s := h.dial(d)
	w, r := aWrite(m), aRead(m)
	s.submit(w, r)
	within(t, held, "the write")
	eventually(t, "both are sent", func() bool { l := s.route.lanes[0]; return l.sent.Load() == 2 })
	s.route.Cancel(s.refs(w, r))
	s.finish(w, r)
	if codeOf(w.fault) != xfer.Interrupted || w.certainty != xfer.Unknown {
		t.Errorf("write: %v (%v)", w.fault, w.certainty)
	}
	if codeOf(r.fault) != xfer.Interrupted || r.certainty != xfer.Confirmed {
		t.Errorf("read: %v (%v)", r.fault, r.certainty)
	}
	close(release)
	s.do(aWrite(m), aRead(m))
}

// TestAHalfSentRequestThatIsCanceledEndsSoon: the peer has stopped reading in the middle of it.
func TestAHalfSentRequestThatIsCanceledEndsSoon(t *testing.T) {
	srv := listenRaw(t, func(c *conn) {
		if c.number == 1 {
			c.header()
			c.stand()
			return
		}
		(&target{version: 2}).serve(c)
	})
	h := openHost(t, "tcp.lanes", "1")
	m := h.memory(32<<20, false)
	_, s := h.dial(srv.desc(2, 0))
	s.narrow()
	k := write(m, 0, 32<<20, remoteBase)
	s.submit(k)
	eventually(t, "it is half sent", func() bool { return s.held() > 0 })
	s.drop(k)
	s.route.Cancel(s.refs(k))
	s.finish(k) // patience is shorter than the limit for a stalled peer
	if k.certainty != xfer.Unknown {
		t.Errorf("the peer's memory is %v", k.certainty)
	}
	s.do(aWrite(m))
}

func TestARequestOnTheSerialConnectionCanBeCanceled(t *testing.T) {
	for _, version := range []int{0, 1, 2} {
		for _, op := range []xfer.Op{xfer.Write, xfer.Read} {
			if version == 0 && op == xfer.Write {
				continue // nothing is waited for: it is over once it is in the socket
			}
			t.Run(fmt.Sprintf("version %d, %s", version, op), func(t *testing.T) {
				release, held := make(chan struct{}), make(chan struct{}, 100)
				var once sync.Once
				g := &target{version: version, once: version == 0, before: func(h tcpframe.Header) bool {
					if h.Addr == remoteBase+1<<20 {
						held <- struct{}{}
						<-release
					}
					return true
				}}
				defer once.Do(func() { close(release) })
				_, d := g.start(t)
				h := openHost(t, "tcp.lanes", "1")
				m := h.memory(4<<20, false)
				_, s := h.dial(d)
				k := newTask(op, m, 0, 4<<20, remoteBase+1<<20).suspect()
				next := newTask(op, m, 0, 100, remoteBase).suspect()
				s.submit(k, next)
				within(t, held, "the request")
				pattern(k.memory(), 1)
				s.drop(k)
				s.route.Cancel(s.refs(k))
				s.finish(k)
				if codeOf(k.fault) != xfer.Interrupted {
					t.Errorf("got %v", k.fault)
				}
				pattern(k.memory(), 666)
				once.Do(func() { close(release) })
				s.finish(next)
				if next.fault != nil {
					t.Errorf("the next request: %v", next.fault)
				}
				s.do(newTask(op, m, 3<<20, 100, remoteBase))
				if !bytes.Equal(k.memory()[200:3<<20], patterned(4<<20, 666)[200:3<<20]) {
					t.Error("local memory was touched after the end")
				}
			})
		}
	}
}

// TestCancelingAtRandomNeverTouchesMemoryLater cancels in the middle of real traffic between two transports.
func TestCancelingAtRandomNeverTouchesMemoryLater(t *testing.T) {
	there, here := openHost(t), openHost(t)
	remote, local := there.memory(32<<20, true), here.memory(32<<20, false)
	pattern(remote.Bytes(), 1)
	for round := range 20 {
		d := there.desc()
		if round%2 == 1 {
			d = there.plainDesc()
		}
		r, s := here.dial(d)
		for inner := range 10 {
			var ks []*task
			for i := range uint64(64) {
				size := []uint64{100, 5000, 40000, 300000}[(uint64(inner)+i)%4]
				ks = append(ks, read(local, i*400000, size, uint64(remote.At(i*300000))))
			}
			s.submit(ks...)
			s.drop(ks...)
			s.route.Cancel(s.refs(ks...))
			var ended []*task
			for _, k := range ks {
				if k.over() && k.fault != nil {
					pattern(k.memory(), 7)
					ended = append(ended, k)
				}
			}
			s.finish(ks...)
			s.do(read(local, 31<<20, 100, uint64(remote.Addr)), read(local, 31<<20, 100000, uint64(remote.Addr)))
			for _, k := range ended {
				if !bytes.Equal(k.memory(), patterned(int(k.len), 7)) {
					t.Fatal("local memory was touched after the end of its request")
				}
			}
		}
		quiesce(t, r)
	}
}
