package transporttest

//moonpath:goroutines

import (
	"sync"
	"time"
)

var load = []testCase{
	{name: "many routes", demands: "many routes to one target work beside each other",
		run: func(x *rig) {
			const routes, each = 8, 60
			var all sync.WaitGroup
			ks := x.mixture(routes * each)
			for i := range routes {
				s := x.dial()
				all.Go(func() { s.submit(ks[i*each : (i+1)*each]...) })
			}
			all.Wait()
			for i, s := range x.sources {
				mine := ks[i*each : (i+1)*each]
				s.await(mine...)
				s.completed(mine...)
			}
		}},
	{name: "bounded", demands: "goroutines and descriptors are a function of routes and not of requests, within what Options say",
		run: func(x *rig) {
			const routes, each = 4, 500
			before := remains()
			ks := x.mixture(routes * each)
			for i := range routes {
				x.dial().submit(ks[i*each : (i+1)*each]...)
			}
			during := remains()
			if n, most := len(during.goroutines)-len(before.goroutines), routes*x.opt.Goroutines; n > most {
				x.fail("%d routes with %d requests each have %d goroutines; Options.Goroutines allows %d in all", routes, each, n, most)
			}
			if n, most := len(during.files)-len(before.files), routes*x.opt.Files; n > most {
				x.fail("%d routes with %d requests each have %d descriptors; Options.Files allows %d in all", routes, each, n, most)
			}
			for i, s := range x.sources {
				s.await(ks[i*each : (i+1)*each]...)
			}
		}},
	{name: "nothing is left", demands: "when all routes are quiesced and both transports are closed, no goroutine, descriptor or lease is left",
		run: func(x *rig) {
			for range 6 {
				s := x.dial()
				s.submit(x.mixture(30)...)
				s.submit(x.task(x.ops()[0], 1<<20))
			}
			for _, s := range x.sources[:3] {
				s.quiesce(ended())
			} // finish sees to the others, and looks
		}},
	{name: "hours in seconds", demands: "a route that has carried many thousand requests carries the next",
		run: func(x *rig) {
			s, ops := x.dial(), x.ops()
			var ks []*task
			for i := range 64 {
				k := x.task(ops[i%len(ops)], 512)
				k.quick = true
				ks = append(ks, k)
			}
			for range 300 {
				s.again(ks...)
			}
			s.do(x.mixture(20)...)
		}},
}

// again runs tasks that have ended once more, and allocates nothing. One goroutine at a time calls it.
func (s *source) again(ks ...*task) {
	for _, k := range ks {
		k.cut, k.left, k.fault = 0, k.len, nil
	}
	s.queue(ks...)
	s.route.Kick()
	if s.limit == nil {
		s.limit = time.NewTimer(s.x.opt.Patience)
	}
	s.limit.Reset(s.x.opt.Patience)
	for _, k := range ks {
		select {
		case <-k.ended:
		case <-s.limit.C:
			s.x.fatal("the %s did not end within %v", k, s.x.opt.Patience)
		}
	}
	s.limit.Stop()
}
