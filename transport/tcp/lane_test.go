package tcp

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// kinds are the peers that pipelining is tested with.
var kinds = map[string]uint64{"published peer": 0, "moonpath peer": 0xabcdef}

func TestTransfersMoveTheirBytes(t *testing.T) {
	for name, incarnation := range kinds {
		t.Run(name, func(t *testing.T) {
			g := &target{version: 2, incarnation: incarnation}
			_, d := g.start(t)
			h := openHost(t)
			m := h.memory(16<<20, false)
			_, s := h.dial(d)
			for i, n := range []uint64{1, 5, 4096, 16384, 16385, 65536, 1 << 20, 1<<20 + 1, 5<<20 + 3} {
				payload := patterned(int(n), uint64(i))
				copy(m.Bytes()[3:], payload)
				s.do(write(m, 3, n, remoteBase+7))
				if !bytes.Equal(g.load(remoteBase+7, n), payload) {
					t.Fatalf("%d bytes written are not there", n)
				}
				clear(m.Bytes())
				s.do(read(m, 3, n, remoteBase+7))
				if !bytes.Equal(m.Bytes()[3:3+n], payload) {
					t.Fatalf("%d bytes read are wrong", n)
				}
				if m.Bytes()[2] != 0 || m.Bytes()[3+n] != 0 {
					t.Fatalf("a read of %d bytes changed its neighbours", n)
				}
			}
		})
	}
}

func TestTransfersBetweenTwoTransports(t *testing.T) {
	there, here := openHost(t), openHost(t)
	remote, local := there.memory(32<<20, true), here.memory(32<<20, false)
	for _, d := range []func() *peer{func() *peer { return &peer{desc: there.desc()} }, func() *peer { return &peer{desc: there.plainDesc()} }} {
		_, s, err := here.tryDial(d())
		if err != nil {
			t.Fatal(err)
		}
		pattern(local.Bytes(), 9)
		want := bytes.Clone(local.Bytes())
		var ks []*task
		for off := uint64(0); off < local.Len; {
			n := min(off%70000+1, local.Len-off)
			ks = append(ks, write(local, off, n, uint64(remote.At(off))))
			off += n
		}
		s.do(ks...)
		if !bytes.Equal(remote.Bytes(), want) {
			t.Fatal("what was written is wrong")
		}
		clear(local.Bytes())
		for i, k := range ks {
			ks[i] = read(local, k.off, k.len, k.remote)
		}
		s.do(ks...)
		if !bytes.Equal(local.Bytes(), want) {
			t.Fatal("what was read is wrong")
		}
		clear(remote.Bytes())
	}
}

// recorder is a server that confirms writes and keeps every byte of them.
type recorder struct {
	mu       sync.Mutex
	headers  []tcpframe.Header
	paddings [][]byte
}

func (g *recorder) serve(incarnation uint64) func(c *conn) {
	return func(c *conn) {
		if incarnation != 0 && !c.greet(incarnation) {
			return
		}
		for {
			h, padding, ok := c.header()
			if !ok {
				return
			}
			g.mu.Lock()
			g.headers = append(g.headers, h)
			g.paddings = append(g.paddings, padding)
			g.mu.Unlock()
			answer := status(tcpframe.OK)
			if h.Opcode == v2Write {
				if _, ok := c.payload(h.Size); !ok {
					return
				}
			} else {
				answer = append(answer, make([]byte, h.Size)...)
			}
			if !c.put(answer) {
				return
			}
		}
	}
}

// take returns what was recorded since the last time.
func (g *recorder) take() (headers []tcpframe.Header, paddings [][]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	headers, paddings = g.headers, g.paddings
	g.headers, g.paddings = nil, nil
	return headers, paddings
}

func TestOneHeaderPerPieceWithZeroPadding(t *testing.T) {
	g := new(recorder)
	srv := listenRaw(t, g.serve(0))
	h := openHost(t)
	m := h.memory(8<<20, false)
	_, s := h.dial(srv.desc(2, 0))
	const big = 5<<20 + 3
	for _, k := range []*task{write(m, 0, 5, remoteBase), read(m, 0, 5, remoteBase+1), write(m, 0, big, remoteBase+100), read(m, 1, big, remoteBase+200)} {
		g.take()
		s.do(k)
		want := []tcpframe.Header{}
		opcode := byte(v2Read)
		if k.op == xfer.Write {
			opcode = v2Write
		}
		for off := uint64(0); off < k.len; off += pieceBytes {
			want = append(want, tcpframe.Header{Size: min(pieceBytes, k.len-off), Addr: k.remote + off, Opcode: opcode})
		}
		got, paddings := g.take()
		slices.SortFunc(got, func(a, b tcpframe.Header) int { return int(a.Addr) - int(b.Addr) })
		if !slices.Equal(got, want) {
			t.Errorf("%s of %d bytes: headers %+v, want %+v", k.op, k.len, got, want)
		}
		for _, p := range paddings {
			if !bytes.Equal(p, make([]byte, 7)) {
				t.Fatalf("padding % x", p)
			}
		}
	}
}

// TestRequestsArePipelined: many headers arrive before the first answer is given.
func TestRequestsArePipelined(t *testing.T) {
	const n = 100
	all := make(chan struct{})
	srv := listenRaw(t, func(c *conn) {
		for range n {
			if _, _, ok := c.header(); !ok {
				return
			}
		}
		close(all)
		c.put(slices.Repeat(append(status(tcpframe.OK), make([]byte, 8)...), n))
		c.waitEnd()
	})
	h := openHost(t, "tcp.lanes", "1")
	m := h.memory(4096, false)
	_, s := h.dial(srv.desc(2, 0))
	var ks []*task
	for i := range uint64(n) {
		ks = append(ks, read(m, 8*i, 8, remoteBase+8*i))
	}
	s.submit(ks...)
	within(t, all, "all headers at once")
	s.finish(ks...)
}

func TestR_TCP_2_TenThousandTransfersUseABoundedNumberOfSockets(t *testing.T) {
	for name, incarnation := range kinds {
		for _, lanes := range []int{1, 2, 4} {
			t.Run(fmt.Sprintf("%s, %d lanes", name, lanes), func(t *testing.T) {
				before := sockets(t)
				g := &target{version: 2, incarnation: incarnation}
				srv, d := g.start(t)
				h := openHost(t, "tcp.lanes", fmt.Sprint(lanes))
				m := h.memory(1<<20, false)
				r, s := h.dial(d)
				var submitters sync.WaitGroup
				for i := range 12 {
					submitters.Go(func() {
						for j := range 10000 / 12 / 50 {
							var ks []*task
							for k := range 50 {
								n := uint64((i+j+k)%3*20000 + 1)
								if k%2 == 0 {
									ks = append(ks, write(m, uint64(i)*50000, n, remoteBase+uint64(i)*50000))
								} else {
									ks = append(ks, read(m, uint64(i)*50000, n, remoteBase+uint64(i)*50000))
								}
							}
							s.submit(ks...)
							for _, k := range ks {
								select {
								case <-k.ended:
								case <-time.After(patience):
									t.Error("a transfer did not end")
									return
								}
								if k.fault != nil {
									t.Errorf("transfer failed: %v", k.fault)
								}
							}
						}
					})
				}
				submitters.Wait()
				if got := int(srv.accepted.Load()); got > lanes {
					t.Errorf("%d sockets for %d lanes", got, lanes)
				}
				if got := r.Quiesce(t.Context()); got != transport.Quiet {
					t.Errorf("the route is %v", got)
				}
				srv.vanish()
				h.tr.accept.poller.Close()
				eventually(t, "all sockets gone", func() bool { return sockets(t) <= before })
			})
		}
	}
}

// TestR_TCP_2_SmallRequestsDoNotWaitBehindBulk: the peer answers bulk requests only when all the small ones,
// submitted later, are done.
func TestR_TCP_2_SmallRequestsDoNotWaitBehindBulk(t *testing.T) {
	for name, incarnation := range kinds {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			bulk := make(chan struct{}, 1000)
			g := &target{version: 2, incarnation: incarnation}
			g.before = func(h tcpframe.Header) bool {
				if h.Size > transport.SmallLimit {
					bulk <- struct{}{}
					<-release
				}
				return true
			}
			_, d := g.start(t)
			h := openHost(t)
			m := h.memory(64<<20, false)
			_, s := h.dial(d)
			large := []*task{write(m, 0, 60<<20, remoteBase), read(m, 0, 3<<20, remoteBase)}
			s.submit(large...)
			within(t, bulk, "a bulk request")
			for i := range uint64(200) {
				s.do(write(m, 61<<20, 4096, remoteBase+61<<20+i), read(m, 62<<20, 4096, remoteBase+62<<20+i))
			}
			if large[0].over() || large[1].over() {
				t.Error("the bulk requests are over; the test proves nothing")
			}
			close(release)
			s.finish(large...)
		})
	}
}

func TestLanesAreConnectedAsWorkNeedsThem(t *testing.T) {
	g := &target{version: 2, incarnation: 5}
	srv, d := g.start(t)
	h := openHost(t)
	m := h.memory(32<<20, false)
	_, s := h.dial(d)
	for range 100 {
		s.do(write(m, 0, 100, remoteBase))
		s.do(write(m, 0, 100000, remoteBase))
	}
	if got := srv.accepted.Load(); got != 2 {
		t.Errorf("%d connections for one request at a time", got)
	}
	s.do(write(m, 0, 32<<20, remoteBase))
	if got := srv.accepted.Load(); got > 4 {
		t.Errorf("%d connections", got)
	}
}

func TestAnIdleConnectionClosedByThePeerCostsNoRequest(t *testing.T) {
	for name, incarnation := range kinds {
		for _, how := range []string{"closed", "reset"} {
			t.Run(name+" "+how, func(t *testing.T) {
				g := &target{version: 2, incarnation: incarnation}
				srv, d := g.start(t)
				h := openHost(t)
				m := h.memory(2<<20, false)
				_, s := h.dial(d)
				for round := range 5 {
					s.do(write(m, 0, 100, remoteBase), write(m, 0, 2<<20, remoteBase), read(m, 0, 100, remoteBase).suspect())
					srv.end(how == "reset")
					if round%2 == 0 { // else the next request comes before the end has been noticed
						srv.endAll(s.route)
					}
				}
			})
		}
	}
}

// TestASuspectAloneIsServedAfterAllConnectionsEnded: the lanes have been connected before, and nothing but
// the suspect waits.
func TestASuspectAloneIsServedAfterAllConnectionsEnded(t *testing.T) {
	for name, incarnation := range kinds {
		t.Run(name, func(t *testing.T) {
			g := &target{version: 2, incarnation: incarnation}
			srv, d := g.start(t)
			h := openHost(t, "tcp.lanes", "2")
			m := h.memory(2<<20, false)
			_, s := h.dial(d)
			s.do(write(m, 0, 100, remoteBase), write(m, 0, 2<<20, remoteBase))
			srv.endAll(s.route)
			s.do(read(m, 0, 100, remoteBase).suspect())
		})
	}
}

func TestSuspectsGoAlone(t *testing.T) {
	var busy atomic.Int32
	var most atomic.Int32
	g := &target{version: 2}
	g.refuse = func(addr uint64) bool {
		if addr < remoteBase+1<<20 {
			return false
		}
		if n := busy.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer busy.Add(-1)
		return addr%2 == 1
	}
	srv, d := g.start(t)
	h := openHost(t)
	m := h.memory(1<<20, false)
	_, s := h.dial(d)
	var good, bad []*task
	for i := range uint64(50) {
		good = append(good, write(m, i*8, 8, remoteBase+i*8), write(m, 0, 20000, remoteBase+10000), read(m, 900000, 8, remoteBase+2<<20+2*i).suspect())
		bad = append(bad, write(m, i*8, 8, remoteBase+2<<20+2*i+1).suspect(), read(m, 900000, 8, remoteBase+2<<20+2*i+1).suspect())
	}
	s.submit(slices.Concat(good, bad)...)
	s.finish(good...)
	s.finish(bad...)
	for _, k := range good {
		if k.fault != nil {
			t.Fatalf("an innocent request failed: %v", k.fault)
		}
		if n := g.times(k.remote); k.queue != transport.Suspect && k.op == xfer.Write && k.len == 8 && n != 1 {
			t.Fatalf("a request on a lane was executed %d times", n)
		}
	}
	for _, k := range bad {
		if codeOf(k.fault) != xfer.Refused || k.certainty != xfer.Confirmed {
			t.Fatalf("got %v (%v), want a refusal", k.fault, k.certainty)
		}
	}
	if got := most.Load(); got > 1 {
		t.Errorf("%d suspects at once", got)
	}
	if got := srv.accepted.Load(); got > 4+1+100 { // lanes, and one anew after each rejection
		t.Errorf("%d connections", got)
	}
}

func TestQuiesceFinishesWhatIsUnderWay(t *testing.T) {
	for name, incarnation := range kinds {
		t.Run(name, func(t *testing.T) {
			g := &target{version: 2, incarnation: incarnation}
			_, d := g.start(t)
			h := openHost(t)
			m := h.memory(4<<20, false)
			r, s := h.dial(d)
			ks := []*task{write(m, 0, 100, remoteBase), write(m, 0, 100, remoteBase).suspect(), write(m, 0, 1<<20, remoteBase)}
			s.submit(ks...)
			eventually(t, "all taken", func() bool { return s.Waiting() == 0 })
			if got := quiesceWithin(t, r, t.Context()); got != transport.Quiet {
				t.Errorf("the route is %v", got)
			}
			for i, k := range ks {
				if !k.over() || k.fault != nil {
					t.Errorf("task %d: %v", i, k.fault)
				}
			}
			if n := s.held(); n != 0 {
				t.Errorf("%d chunks are out", n)
			}
		})
	}
}

// TestQuiesceEndsInTheMiddleOfAnything ends routes while several goroutines submit and the peer answers, or
// does not; each route has to come to rest with all its chunks back.
func TestQuiesceEndsInTheMiddleOfAnything(t *testing.T) {
	there := openHost(t)
	remote := there.memory(8<<20, true)
	silent := listenRaw(t, func(c *conn) { c.waitEnd() })
	mute := silent.desc(2, 0)
	h := openHost(t)
	m := h.memory(8<<20, false)
	for i := range 100 {
		d, base := there.desc(), uint64(remote.Addr)
		switch i % 3 {
		case 1:
			d = there.plainDesc()
		case 2:
			d, base = mute, remoteBase
		}
		r, s := h.dial(d)
		ctx, stop := context.WithCancel(t.Context())
		var submitters sync.WaitGroup
		for range 3 {
			submitters.Go(func() {
				for ctx.Err() == nil && s.held() < 2000 {
					s.submit(write(m, 0, 700000, base), read(m, 4<<20, 3000, base), write(m, 0, 10, base))
				}
			})
		}
		eventually(t, "work is under way", func() bool { return s.held() > i%20 })
		s.close()
		quiesce(t, r)
		stop()
		submitters.Wait()
		if n := s.held(); n != 0 {
			t.Fatalf("round %d: %d chunks are out", i, n)
		}
	}
}

// TestQuiesceDoesNotPromiseWhatItCannotKnow: writes were sent, and nobody knows whether they still happen.
func TestQuiesceDoesNotPromiseWhatItCannotKnow(t *testing.T) {
	frozen := func(c *conn) { c.stand() }
	for name, x := range map[string]struct {
		version int
		make    func(m *mem.Region) *task
		act     func(s *source, k *task)
	}{
		"a lane that stalled":      {2, aWrite, func(s *source, k *task) { s.finish(k) }},
		"a suspect that stalled":   {2, func(m *mem.Region) *task { return aWrite(m).suspect() }, func(s *source, k *task) { s.finish(k) }},
		"version 1":                {1, aWrite, func(s *source, k *task) { s.finish(k) }},
		"version 1, no answer":     {0, aWrite, func(s *source, k *task) { s.finish(k) }},
		"a canceled suspect":       {2, func(m *mem.Region) *task { return aWrite(m).suspect() }, func(s *source, k *task) { s.route.Cancel(s.refs(k)) }},
		"a canceled write":         {2, aWrite, func(s *source, k *task) { s.route.Cancel(s.refs(k)) }},
		"a write under way":        {2, aWrite, func(*source, *task) {}},
		"a suspect under way":      {2, func(m *mem.Region) *task { return aWrite(m).suspect() }, func(*source, *task) {}},
		"version 1, one under way": {1, aWrite, func(*source, *task) {}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := listenRaw(t, frozen)
			h := openHost(t, "tcp.lanes", "1", "tcp.progress_timeout", "300ms")
			m := h.memory(4096, false)
			r, s := h.dial(srv.desc(x.version, 0))
			k := x.make(m)
			s.submit(k)
			eventually(t, "it is sent", func() bool { return len(s.refs(k)) > 0 || k.over() })
			eventually(t, "it is out", func() bool { return k.over() || r.underWay() })
			x.act(s, k)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if got := quiesceWithin(t, r, ctx); got != transport.LocalQuiet {
				t.Errorf("the route is %v", got)
			}
			s.finish(k)
		})
	}
}

// underWay reports whether a request has been sent and not answered.
func (r *route) underWay() bool {
	for _, l := range r.lanes {
		if l.sent.Load() > l.head.Load() {
			return true
		}
	}
	return slices.ContainsFunc(r.serial, func(s *serial) bool { return s.active.Load() })
}
