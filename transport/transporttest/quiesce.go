package transporttest

//moonpath:goroutines

import (
	"sync"

	"github.com/moonpath-io/moonpath/transport"
)

var quiescing = []testCase{
	{name: "idle", demands: "Quiesce of a route that has nothing to do returns soon and promises at least that local memory is quiet",
		run: func(x *rig) {
			s := x.dial()
			s.do(x.mixture(10)...)
			if q := s.quiesce(x.Context()); q == transport.Unquiet {
				x.fail("it returned %q", q)
			}
		}},
	{name: "never used", demands: "Quiesce of a route that was never kicked returns soon",
		run: func(x *rig) {
			if q := x.dial().quiesce(x.Context()); q == transport.Unquiet {
				x.fail("it returned %q", q)
			}
		}},
	{name: "twice", demands: "a second Quiesce returns, and promises no less",
		run: func(x *rig) {
			s := x.dial()
			s.do(x.mixture(10)...)
			first := s.quiesce(x.Context())
			if second := s.quiesce(x.Context()); second < first {
				x.fail("first %q, then %q", first, second)
			}
		}},
	{name: "under traffic", demands: "Quiesce gives back all that is out before it returns; with time enough it may finish it",
		run: func(x *rig) {
			s, ks := x.dial(), x.bulk()
			s.submit(ks...)
			s.quiesce(x.Context())
			s.await(ks...)
		}},
	{name: "with an ended context", demands: "Quiesce with a context that has ended returns soon, and gives back all that is out or says that it does not",
		run: func(x *rig) {
			s, ks := x.dial(), x.bulk()
			s.submit(ks...)
			if s.quiesce(ended()) != transport.Unquiet {
				s.await(ks...)
			}
		}},
	{name: "among kicks", demands: "Quiesce beside submitters that go on kicking returns, and nothing is taken after it",
		run: func(x *rig) {
			s, ks := x.dial(), x.mixture(400)
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() {
					for _, k := range ks[i*100 : (i+1)*100] {
						s.submit(k)
					}
				})
			}
			x.until("something is taken", func() bool { return s.everTaken() > 0 })
			s.quiesce(x.Context())
			all.Wait()
			s.await(ks...)
		}},
	{name: "takes nothing after", demands: "a route that was quiesced takes nothing more, even when it is kicked",
		run: func(x *rig) {
			s := x.dial()
			s.do(x.mixture(10)...)
			s.quiesce(x.Context())
			taken := s.everTaken()
			s.mu.Lock()
			s.state = sourceOpen // as if the engine had not closed the queue
			s.mu.Unlock()
			ks := x.mixture(4)
			for range 100 {
				s.queue(ks...)
				ks = nil
				s.route.Kick()
			}
			x.within("Kick and Cancel after Quiesce", func() { s.route.Cancel([]transport.Ref{{}}); s.route.Kick() })
			s.quiesce(x.Context())
			if now := s.everTaken(); now != taken {
				x.fail("%d chunks were taken after Quiesce had returned", now-taken)
			}
		}},
	{name: "by several at once", demands: "several callers of Quiesce all return",
		run: func(x *rig) {
			s := x.dial()
			s.submit(x.bulk()...)
			s.close()
			x.within("three calls of Quiesce", func() {
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() { s.route.Quiesce(x.Context()) })
				}
				all.Wait()
			})
		}},
	{name: "one of two routes", demands: "the end of one route leaves another one to the same target alone",
		run: func(x *rig) {
			one, other := x.dial(), x.dial()
			ks, mine := x.bulk(), x.mixture(100)
			one.submit(mine...)
			other.submit(ks...)
			one.quiesce(ended())
			other.await(ks...)
			other.completed(ks...)
			other.do(x.mixture(20)...)
		}},
}

// bulk makes requests that take a while.
func (x *rig) bulk() (ks []*task) {
	ops := x.ops()
	for i := range 8 {
		ks = append(ks, x.task(ops[i%len(ops)], 1<<20+uint64(i)))
	}
	return append(ks, x.mixture(40)...)
}
