package transporttest

import "github.com/moonpath-io/moonpath/xfer"

var completion = []testCase{
	{name: "data before done", demands: "when Done says that a chunk is done, its bytes are at their destination",
		run: func(x *rig) {
			s := x.dial()
			for _, n := range []uint64{64, 20_000, 3 << 20} {
				for _, op := range x.ops() {
					s.do(x.task(op, n), x.task(op, n)) // the source looks, within Done
				}
			}
		}},
	{name: "exactly once", demands: "each chunk that was taken comes back once, and none that was not taken",
		run: func(x *rig) {
			s, ops := x.dial(), x.ops()
			var ks []*task
			for i := range 400 {
				ks = append(ks, x.task(ops[i%len(ops)], uint64(1+i*97)))
			}
			s.do(ks...)
			s.quiesce(x.Context())
			if n, of := s.out(); n > 0 {
				x.fail("%d chunks are out, of %v", n, of)
			}
		}},
	{name: "local memory is quiet", demands: "nothing touches a chunk's local memory once Done has given it back",
		run: func(x *rig) {
			s, ops := x.dial(), x.ops()
			for i := range 50 {
				// Each is poisoned within Done; what follows on the same route would show a late touch.
				s.do(x.task(ops[i%len(ops)], uint64(1+i*997)), x.task(ops[i%len(ops)], 30_000))
			}
		}},
	{name: "one place again and again", demands: "requests for one place that wait for each other are seen in their order",
		run: func(x *rig) {
			ops := x.ops()
			if len(ops) < len(both) {
				x.Skip("the transport offers one operation")
			}
			s, far := x.dial(), x.far.place(5000, 0)
			for range 20 {
				w := x.between(xfer.Write, 5000, x.near, x.near.place(5000, 1), x.far, far)
				s.do(w)
				r := x.aimed(xfer.Read, 5000, x.near, x.near.place(5000, 2), w.remote)
				r.far, r.fresh = w.far, w.fresh // what was written
				s.do(r)
				w.quick = true // its place is written anew
				r.quick = true
			}
		}},
	{name: "a burst of small ones", demands: "many small requests that were queued at once all end",
		run: func(x *rig) {
			s, ops := x.dial(), x.ops()
			var ks []*task
			for i := range 3000 {
				ks = append(ks, x.task(ops[i%len(ops)], uint64(1+i%200)))
			}
			s.do(ks...)
		}},
}
