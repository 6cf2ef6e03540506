package transporttest

import (
	"errors"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/xfer"
)

var lifecycle = []testCase{
	{name: "close", demands: "Close of a transport whose routes were quiesced succeeds, and nothing is left of it",
		run: func(x *rig) {
			s := x.dial()
			s.do(x.mixture(20)...)
			s.quiesce(x.Context()) // finish closes
		}},
	{name: "close of an unused transport", demands: "Close succeeds although nothing was ever dialled",
		run: func(x *rig) {}},
	{name: "dial after close", demands: "Dial of a closed transport is an error that says Closed",
		run: func(x *rig) {
			x.closeInitiator()
			defer x.closeTarget()
			r, err := x.pair.Initiator.Transport.Dial(x.Context(), &x.peer, newSource(x))
			switch {
			case err == nil:
				x.fail("it gave a route")
				r.Quiesce(x.Context())
			case !errors.Is(err, xfer.Closed):
				x.fail("it said: %v", err)
			}
		}},
	{name: "close twice", demands: "a second Close returns, too",
		run: func(x *rig) {
			s := x.dial()
			s.do(x.mixture(5)...)
			s.quiesce(x.Context())
			x.within("two calls of Close", func() { x.closeBoth(); x.closeBoth() })
			x.closed = true
		}},
	{name: "dial of a target that has left", demands: "Dial of a target that has closed is an error, soon",
		run: func(x *rig) {
			x.closeTarget()
			defer x.closeInitiator()
			x.within("Dial of a target that has left", func() {
				s := newSource(x)
				r, err := x.pair.Initiator.Transport.Dial(x.Context(), &x.peer, s)
				if err == nil {
					x.fail("it gave a route")
					r.Quiesce(x.Context())
				}
			})
		}},
	{name: "dial with an ended context", demands: "Dial with a context that has ended returns soon, with a route that works or an error",
		run: func(x *rig) {
			s := newSource(x)
			x.within("Dial with an ended context", func() {
				r, err := x.pair.Initiator.Transport.Dial(ended(), &x.peer, s)
				if err == nil {
					s.route = r
					x.sources = append(x.sources, s)
				}
			})
			if s.route != nil {
				s.do(x.mixture(5)...)
			}
		}},
	{name: "dial again", demands: "after a route was quiesced the target can be dialled again",
		run: func(x *rig) {
			for range 5 {
				s := x.dial()
				s.do(x.mixture(10)...)
				s.quiesce(x.Context())
			}
		}},
	{name: "memory that comes later", demands: "memory that is attached while a route is open can be used on it, at both ends",
		run: func(x *rig) {
			s := x.dial()
			s.do(x.mixture(5)...)
			near := x.memory("initiator's second", &x.pair.Initiator, 256<<10, false)
			far := x.memory("target's second", &x.pair.Target, 256<<10, true)
			x.publish()
			for _, op := range x.ops() {
				s.do(x.between(op, 50_000, near, near.place(50_000, 1), far, far.place(50_000, 2)))
			}
		}},
	{name: "memory that goes and comes", demands: "memory can be detached and attached again, and used again",
		run: func(x *rig) {
			s := x.dial()
			for range 3 {
				near := x.memory("initiator's second", &x.pair.Initiator, 256<<10, false)
				far := x.memory("target's second", &x.pair.Target, 256<<10, true)
				x.publish()
				for _, op := range x.ops() {
					s.do(x.between(op, 20_000, near, near.place(20_000, 1), far, far.place(20_000, 2)))
				}
				x.leases(far.region)
				x.unregister(&x.pair.Initiator, near)
				x.unregister(&x.pair.Target, far)
			}
		}},
	{name: "attach all or none", demands: "Attach and Detach take several regions, and none",
		run: func(x *rig) {
			t, regions := x.pair.Initiator.Transport, x.pair.Initiator.Regions
			var specs []mem.Spec
			for range 10 {
				specs = append(specs, mem.Spec{Bytes: make([]byte, 5000)})
			}
			rs, err := regions.Register(specs)
			if err != nil {
				x.Fatalf("memory of the test cannot be registered: %v", err)
			}
			for _, group := range [][]*mem.Region{nil, rs} {
				if err := t.Attach(x.Context(), group); err != nil {
					x.fail("Attach of %d regions: %v", len(group), err)
				}
				if err := t.Detach(x.Context(), group); err != nil {
					x.fail("Detach of %d regions: %v", len(group), err)
				}
			}
			if err := regions.Close(x.Context(), rs); err != nil {
				x.fail("the regions cannot be unregistered: %v", err)
			}
			regions.Remove(rs)
		}},
	{name: "offers after close", demands: "Name, Offers and Describe of a closed transport return",
		run: func(x *rig) {
			x.closeBoth()
			x.closed = true
			x.within("Name, Offers and Describe after Close", func() {
				t := x.pair.Initiator.Transport
				_ = t.Name()
				_ = t.Offers(x.peer.Desc(), nil)
				t.Describe(&segment.Desc{Name: "anybody"})
			})
		}},
}

func (x *rig) closeInitiator() {
	x.Helper()
	x.closed = true
	x.closeEnd(&x.pair.Initiator)
}

func (x *rig) closeTarget() {
	x.Helper()
	x.closed = true
	x.closeEnd(&x.pair.Target)
}
