package tcp

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// TestOneBadRequestAmongManyIsTheOneThatFails: a published peer answers it by status 1 and a close with input
// unread, which resets the connection; the status, and answers before it, may be lost.
func TestOneBadRequestAmongManyIsTheOneThatFails(t *testing.T) {
	for name, rejection := range map[string]func(c *conn){
		"status and close": nil,
		"status lost":      func(c *conn) { c.reset() },
		"close":            func(c *conn) { c.Close() },
		"status and reset": func(c *conn) { c.put(status(tcpframe.AddressRejected)); c.reset() },
	} {
		for _, op := range []xfer.Op{xfer.Write, xfer.Read} {
			t.Run(fmt.Sprintf("%s, %s", name, op), func(t *testing.T) {
				g := &target{version: 2, rejection: rejection}
				g.refuse = func(addr uint64) bool { return addr >= remoteBase+48<<20 }
				_, d := g.start(t)
				h := openHost(t)
				m := h.memory(1<<20, false)
				_, s := h.dial(d)
				for round := range 20 {
					const n = 200
					size := uint64([]int{4096, 40, 5000}[round%3])
					bad := (round * 37) % n
					pattern(m.Bytes(), uint64(round))
					if op == xfer.Read {
						g.store(remoteBase, m.Bytes())
						clear(m.Bytes())
					}
					var ks []*task
					for i := range uint64(n) {
						off := i * size
						remote := remoteBase + off
						if int(i) == bad {
							remote = remoteBase + 48<<20
						}
						ks = append(ks, newTask(op, m, off, size, remote))
					}
					s.submit(ks...)
					s.finish(ks...)
					for i, k := range ks {
						switch {
						case i == bad:
							// Without a status nobody can know better.
							if code := codeOf(k.fault); code != xfer.Refused && (rejection == nil || code != xfer.Socket) {
								t.Fatalf("round %d: the bad request ended with %v", round, k.fault)
							}
						case k.fault != nil:
							t.Fatalf("round %d: request %d is innocent and failed: %v", round, i, k.fault)
						case !bytes.Equal(g.load(k.remote, k.len), k.memory()):
							t.Fatalf("round %d: request %d has wrong bytes", round, i)
						}
					}
				}
			})
		}
	}
}

// TestManyBadRequestsAmongGoodOnes: as after a published peer has unregistered a buffer that others still use.
func TestManyBadRequestsAmongGoodOnes(t *testing.T) {
	for name, rejection := range map[string]func(c *conn){"status and close": nil, "status lost": func(c *conn) { c.reset() }} {
		t.Run(name, func(t *testing.T) {
			g := &target{version: 2, rejection: rejection}
			g.refuse = func(addr uint64) bool { return addr >= remoteBase+48<<20 }
			_, d := g.start(t)
			h := openHost(t)
			m := h.memory(4<<20, false)
			_, s := h.dial(d)
			var good, bad []*task
			var all []*task
			for i := range uint64(300) {
				size := []uint64{100, 4096, 60000}[i%3]
				if i%5 == 0 {
					k := write(m, 0, size, remoteBase+48<<20+i)
					bad, all = append(bad, k), append(all, k)
				} else {
					k := write(m, 0, size, remoteBase+i*100000)
					good, all = append(good, k), append(all, k)
				}
			}
			s.submit(all...)
			s.finish(all...)
			for _, k := range good {
				if k.fault != nil {
					t.Fatalf("an innocent request failed: %v", k.fault)
				}
			}
			for _, k := range bad {
				if k.fault == nil {
					t.Fatal("a bad request completed")
				}
			}
		})
	}
}

// TestAResetInTheMiddleSendsAgainWhatWasNotAnswered: the first connection answers some requests and is reset.
func TestAResetInTheMiddleSendsAgainWhatWasNotAnswered(t *testing.T) {
	for name, incarnation := range kinds {
		for _, answered := range []int{0, 1, 50, 99} {
			for _, swallowed := range []int{0, 30} { // executed, and the answer lost
				t.Run(fmt.Sprintf("%s, %d answered, %d swallowed", name, answered, swallowed), func(t *testing.T) {
					g := &target{version: 2, incarnation: incarnation}
					var first atomic.Bool
					first.Store(true)
					srv := listenRaw(t, func(c *conn) {
						if !first.Swap(false) {
							g.serve(c)
							return
						}
						if incarnation != 0 && !c.greet(incarnation) {
							return
						}
						if answered+swallowed == 0 {
							c.header()
						}
						for range answered {
							g.one(c)
						}
						for range swallowed {
							h, _, _ := c.header()
							b, _ := c.payload(h.Size)
							if h.Size > 0 {
								g.store(h.Addr, b)
							}
						}
						c.reset()
					})
					h := openHost(t, "tcp.lanes", "1")
					m := h.memory(1<<20, false)
					pattern(m.Bytes(), 3)
					_, s := h.dial(srv.desc(2, incarnation))
					var ks []*task
					for i := range uint64(200) {
						ks = append(ks, write(m, i*4096, 4096, remoteBase+i*4096))
					}
					s.do(ks...)
					for i, k := range ks {
						if !bytes.Equal(g.load(k.remote, k.len), k.memory()) {
							t.Fatalf("request %d: wrong bytes", i)
						}
						if n, limit := g.times(k.remote), 2; n > limit || n == 0 {
							t.Fatalf("request %d was executed %d times", i, n)
						}
					}
				})
			}
		}
	}
}

func TestAPeerThatEndsEveryConnectionIsGivenUp(t *testing.T) {
	for name, incarnation := range kinds {
		t.Run(name, func(t *testing.T) {
			srv := listenRaw(t, func(c *conn) {
				if (incarnation == 0 || c.greet(incarnation)) && c.number%2 == 1 { // else before anything was sent
					c.header()
				}
				c.reset()
			})
			h := openHost(t)
			m := h.memory(1<<20, false)
			_, s := h.dial(srv.desc(2, incarnation))
			var ks []*task
			for range 100 {
				ks = append(ks, aWrite(m), aRead(m), write(m, 0, 100000, remoteBase), read(m, 0, 100, remoteBase).suspect())
			}
			s.submit(ks...)
			s.finish(ks...)
			for _, k := range ks {
				if code := codeOf(k.fault); code != xfer.Socket && code != xfer.Refused {
					t.Fatalf("got %v", k.fault)
				}
			}
		})
	}
}

// TestAPeerThatGoesAwayFailsEverythingSoon: requests under way and queued, and nobody listens any more.
func TestAPeerThatGoesAwayFailsEverythingSoon(t *testing.T) {
	for name, incarnation := range kinds {
		for _, lanes := range []string{"1", "4"} {
			t.Run(name+", lanes "+lanes, func(t *testing.T) {
				g := &target{version: 2, incarnation: incarnation}
				taken := make(chan struct{}, 10000)
				g.before = func(h tcpframe.Header) bool {
					if h.Size == 100 {
						return true
					}
					taken <- struct{}{}
					return false
				}
				srv := listenRaw(t, func(c *conn) {
					g.serve(c)
					c.stand()
				})
				h := openHost(t, "tcp.lanes", lanes)
				m := h.memory(32<<20, false)
				_, s := h.dial(srv.desc(2, incarnation))
				s.do(aWrite(m))
				ks := []*task{write(m, 0, 32<<20, remoteBase), read(m, 0, 32<<20, remoteBase)}
				for i := range uint64(2000) {
					ks = append(ks, write(m, i, 101, remoteBase+i), read(m, i, 101, remoteBase+i))
				}
				s.submit(ks...)
				within(t, taken, "a request")
				srv.vanish()
				s.finish(ks...)
				for _, k := range ks {
					// A connection that ended before hello was answered belonged to nobody we know.
					if code := codeOf(k.fault); code != xfer.Socket && (incarnation == 0 || code != xfer.WrongPeer) {
						t.Fatalf("got %v", k.fault)
					}
				}
				if !slices.ContainsFunc(ks, func(k *task) bool { return k.certainty == xfer.Unknown }) {
					t.Error("the peer took writes and did not answer, and its memory is said to be known")
				}
				// It fails at once from now on.
				k := aWrite(m)
				s.submit(k)
				s.finish(k)
				if codeOf(k.fault) != xfer.Socket {
					t.Errorf("got %v", k.fault)
				}
			})
		}
	}
}

// TestALaneThatCannotConnectAgainLeavesItsWorkToOthers: of two connections the one for bulk breaks, and no more
// connections are to be had.
func TestALaneThatCannotConnectAgainLeavesItsWorkToOthers(t *testing.T) {
	const incarnation = 79
	g := &target{version: 2, incarnation: incarnation}
	var srv *server
	var once sync.Once
	broke := make(chan struct{})
	srv = listenRaw(t, func(c *conn) {
		if !c.greet(incarnation) {
			return
		}
		if c.number == 1 {
			for g.one(c) {
			}
			return
		}
		c.header()
		once.Do(func() {
			srv.l.Close()
			close(broke)
		})
		c.reset()
	})
	h := openHost(t, "tcp.lanes", "2")
	m := h.memory(16<<20, false)
	_, s := h.dial(srv.desc(2, incarnation))
	s.do(aWrite(m))
	ks := []*task{write(m, 0, 16<<20, remoteBase), read(m, 0, 16<<20, remoteBase)}
	s.submit(ks...)
	within(t, broke, "the break")
	s.finish(ks...) // however they end
	s.do(aWrite(m), write(m, 0, 16<<20, remoteBase), read(m, 0, 100, remoteBase).suspect())
}

// TestWhatNobodyTookIsOfferedAgain: the lane for bulk could not be connected, and was forgiven just when the
// other one had looked.
func TestWhatNobodyTookIsOfferedAgain(t *testing.T) {
	g := &target{version: 2, incarnation: 80}
	_, d := g.start(t)
	h := openHost(t, "tcp.lanes", "2")
	m := h.memory(1<<20, false)
	r, s := h.dial(d)
	s.do(aWrite(m))
	k := write(m, 0, 100000, remoteBase)
	s.queue(k)
	var c [1]transport.Chunk
	if s.Take(transport.Want{Bytes: 1 << 20, Piece: 1 << 20, Queues: transport.Set(transport.Bulk)}, c[:]) != 1 {
		t.Fatal("nothing taken")
	}
	r.again.put(work{chunk: c[0]})
	r.lanes[1].failed.Store(true)
	s.finish(k)
	if k.fault != nil {
		t.Error(k.fault)
	}
}

func TestAPeerThatStopsReadingEndsRequestsInTime(t *testing.T) {
	for name, incarnation := range kinds {
		t.Run(name, func(t *testing.T) {
			srv := listenRaw(t, func(c *conn) {
				if incarnation == 0 || c.greet(incarnation) {
					c.header()
				}
				c.stand()
			})
			h := openHost(t, "tcp.progress_timeout", "200ms")
			m := h.memory(64<<20, false)
			_, s := h.dial(srv.desc(2, incarnation))
			begin := time.Now()
			ks := []*task{write(m, 0, 64<<20, remoteBase), read(m, 0, 1<<20, remoteBase), aRead(m).suspect()}
			for range 600 {
				ks = append(ks, aWrite(m), aRead(m))
			}
			s.submit(ks...)
			s.finish(ks...)
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
			for i, k := range ks {
				if code := codeOf(k.fault); code != xfer.Deadline && code != xfer.Socket {
					t.Fatalf("request %d: %v", i, k.fault)
				}
				if k.op == xfer.Read && k.certainty == xfer.Unknown {
					t.Fatal("a read cannot leave the peer in doubt")
				}
			}
			if k := ks[0]; k.certainty != xfer.Unknown {
				t.Error("a write that was sent may still happen, and that is not said")
			}
			if got := s.route.Quiesce(t.Context()); got == 0 {
				t.Errorf("the route is %v", got)
			}
		})
	}
}

// TestLocalMemoryThatIsNotMappedFailsItsRequestAlone: the kernel refuses the whole call in which it is named.
func TestLocalMemoryThatIsNotMappedFailsItsRequestAlone(t *testing.T) {
	for name, incarnation := range kinds {
		for _, op := range []xfer.Op{xfer.Write, xfer.Read} {
			for _, size := range []uint64{100, 300000} {
				t.Run(fmt.Sprintf("%s, %s of %d", name, op, size), func(t *testing.T) {
					g := &target{version: 2, incarnation: incarnation}
					_, d := g.start(t)
					h := openHost(t)
					m := h.memory(32<<20, false)
					gone := h.lost(1 << 20)
					_, s := h.dial(d)
					for round := range 5 {
						var ks []*task
						for i := range uint64(50) {
							ks = append(ks, newTask(op, m, i*size, size, remoteBase+i*size))
						}
						bad := newTask(op, gone, 0, size, remoteBase+60<<20)
						ks = slices.Insert(ks, round*10, bad)
						s.submit(ks...)
						s.finish(ks...)
						for i, k := range ks {
							if k != bad && k.fault != nil {
								t.Fatalf("request %d is innocent and failed: %v", i, k.fault)
							}
						}
						if codeOf(bad.fault) != xfer.Memory {
							t.Fatalf("the bad request ended with %v", bad.fault)
						}
					}
				})
			}
		}
	}
}
