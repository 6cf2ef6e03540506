package transporttest

import (
	"github.com/moonpath-io/moonpath/transport"
)

var canceling = []testCase{
	{name: "unknown chunks", demands: "Cancel of chunks that were never taken, or are back already, does no harm",
		run: func(x *rig) {
			s := x.dial()
			s.do(x.mixture(20)...)
			x.within("Cancel of unknown chunks", func() {
				s.route.Cancel(nil)
				s.route.Cancel([]transport.Ref{{Slot: 0, Gen: 0}, {Slot: 1 << 30, Gen: 7}, {Slot: 3, Gen: 1 << 31}})
			})
			s.do(x.mixture(20)...)
		}},
	{name: "what is out", demands: "chunks that are canceled come back once, done or with a fault, and their neighbours are done",
		run: func(x *rig) {
			for range 5 {
				s, ks, spared := x.dial(), x.bulk()[:4], x.mixture(60)
				s.submit(ks...)
				s.submit(spared...)
				s.route.Cancel(s.refs(ks...))
				s.await(spared...)
				s.completed(spared...)
				s.await(ks...)
				s.quiesce(x.Context())
			}
		}},
	{name: "twice", demands: "Cancel of the same chunks twice gives them back once",
		run: func(x *rig) {
			s, ks := x.dial(), x.bulk()
			s.submit(ks...)
			refs := s.refs(ks...)
			s.route.Cancel(refs)
			s.route.Cancel(refs)
			s.await(ks...)
		}},
	{name: "towards a frozen target", demands: "chunks that are canceled while the target is frozen come back soon, and what may still happen at the target is said",
		needs: []Capability{Freezing},
		run: func(x *rig) {
			s := x.dial()
			s.do(x.mixture(10)...)
			x.freeze()
			ks := x.bulk()
			s.submit(ks...)
			s.withdraw()
			x.until("the canceled chunks come back", func() bool {
				s.route.Cancel(s.refs(ks...))
				n, _ := s.out()
				return n == 0
			})
			s.await(ks...)
			x.thaw()
		}},
}
