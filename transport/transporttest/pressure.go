package transporttest

//moonpath:goroutines

import (
	"sync"
	"time"
)

var pressure = []testCase{
	{name: "one chunk per take", demands: "a taker that got one chunk looks for the next",
		run: func(x *rig) {
			s := x.dial()
			s.perTake = 1
			s.do(x.mixture(200)...)
		}},
	{name: "one at a time", demands: "a route that has just become idle does the next request after one Kick, every time",
		run: func(x *rig) {
			s := x.dial()
			for _, k := range x.mixture(500) {
				s.do(k)
			}
		}},
	{name: "kick without work", demands: "Kick without work does no harm",
		run: func(x *rig) {
			s := x.dial()
			for range 1000 {
				s.route.Kick()
			}
			s.do(x.mixture(2)...)
		}},
	{name: "one kick for all", demands: "one Kick gets everything done that was queued before it, in all queues",
		run: func(x *rig) {
			s, ks := x.dial(), x.mixture(300)
			s.submit(ks...)
			s.await(ks...)
			s.completed(ks...)
		}},
	{name: "work before dial", demands: "work that was queued before Dial returned is done after the first Kick",
		run: func(x *rig) {
			s, ks := newSource(x), x.mixture(50)
			s.queue(ks...)
			x.open(s)
			s.route.Kick()
			s.await(ks...)
			s.completed(ks...)
		}},
	{name: "kick of a taker that goes idle",
		demands: "a Kick that comes after a taker found nothing and before it rests is not lost: a taker takes once more after letting go of its lock",
		run: func(x *rig) {
			s := x.dial()
			for range 100 {
				ks := x.mixture(2)
				kicked := make(chan struct{})
				s.mu.Lock()
				s.onEmpty = func() {
					s.queue(ks[1])
					go func() {
						defer close(kicked)
						s.route.Kick()
					}()
					select {
					case <-kicked:
					case <-time.After(10 * time.Millisecond): // the taker holds a lock over Take, as it may
					}
				}
				s.mu.Unlock()
				s.submit(ks[0])
				s.await(ks[0])
				s.mu.Lock()
				idle := s.onEmpty != nil
				s.onEmpty = nil
				s.mu.Unlock()
				if idle { // nobody looked in vain, so there is nothing to race with
					s.submit(ks[1])
				}
				s.await(ks[1])
				s.completed(ks...)
			}
		}},
	{name: "many submitters", demands: "of requests that many goroutines queue and kick at the same time none is lost and none sleeps",
		run: func(x *rig) {
			const submitters, each = 8, 60
			s, ks := x.dial(), x.mixture(submitters*each)
			var all sync.WaitGroup
			for i := range submitters {
				all.Go(func() {
					for _, k := range ks[i*each : (i+1)*each] {
						s.submit(k)
						select {
						case <-k.ended:
							k.ended <- struct{}{}
						case <-time.After(x.opt.Patience):
							x.fail("the %s did not end within %v; nobody else was going to kick", k, x.opt.Patience)
							return
						}
					}
				})
			}
			all.Wait()
			if !x.Failed() {
				s.completed(ks...)
			}
		}},
}

// mixture makes n requests, small and large, of all operations.
func (x *rig) mixture(n int) (ks []*task) {
	ops := x.ops()
	for i := range n {
		size := uint64(1 + i%5000)
		if i%10 == 9 {
			size = 60_000
		}
		ks = append(ks, x.task(ops[i%len(ops)], size))
	}
	return ks
}
