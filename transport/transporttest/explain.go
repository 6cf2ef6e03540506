package transporttest

import (
	"errors"
	"strings"

	"github.com/moonpath-io/moonpath/xfer"
)

var explaining = []testCase{
	{name: "refused memory", demands: "the fault of a refused request has code, stage, path, peer and a next step",
		run: func(x *rig) {
			s := x.dial()
			for _, op := range x.ops() {
				k := x.outside(op, 100, 64)
				s.submit(k)
				s.await(k)
				x.explained(k.fault)
			}
		}},
	{name: "lost memory", demands: "the fault of a request whose local memory is not mapped has code, stage, path, peer and a next step",
		run: func(x *rig) {
			lost, s := x.lost("initiator's lost", &x.pair.Initiator, false), x.dial()
			for _, op := range x.ops() {
				k := x.blind(op, 100, lost.region, 0, x.far.region, x.far.place(100, 0))
				s.submit(k)
				s.await(k)
				x.explained(k.fault)
				if k.fault != nil && k.fault.Code != xfer.Memory {
					x.fail("the code is %s, want Memory: %v", k.fault.Code.Name(), k.fault)
				}
			}
		}},
	{name: "a target that has left", demands: "the error of Dial to a target that has left is a Fault with code, stage dial, path, peer and a next step",
		run: func(x *rig) {
			x.closeTarget()
			defer x.closeInitiator()
			r, err := x.pair.Initiator.Transport.Dial(x.Context(), &x.peer, newSource(x))
			if err == nil {
				r.Quiesce(x.Context())
				x.fatal("Dial gave a route")
			}
			var f *xfer.Fault
			if !errors.As(err, &f) {
				x.fatal("the error is no *xfer.Fault: %v", err)
			}
			x.explained(f)
			if f.Stage != xfer.StageDial {
				x.fail("the stage is %q: %v", f.Stage, f)
			}
		}},
	{name: "a quiesced route", demands: "the fault of a request that Quiesce gave back unfinished has code, stage, path, peer and a next step",
		needs: []Capability{Freezing},
		run: func(x *rig) {
			s := x.dial()
			s.do(x.mixture(2)...)
			x.freeze()
			ks := x.mixture(20)
			s.submit(ks...)
			s.quiesce(ended())
			x.allExplained(ks)
			x.thaw()
		}},
	{name: "a canceled request", demands: "the fault of a request that was canceled has code, stage, path, peer and a next step",
		needs: []Capability{Freezing},
		run: func(x *rig) {
			s := x.dial()
			s.do(x.mixture(2)...)
			x.freeze()
			ks := x.mixture(20)
			s.submit(ks...)
			s.withdraw()
			x.until("the canceled chunks come back", func() bool {
				s.route.Cancel(s.refs(ks...))
				n, _ := s.out()
				return n == 0
			})
			s.await(ks...)
			x.allExplained(ks)
			x.thaw()
		}},
	{name: "a killed target", demands: "the fault of a request to a killed target has code, stage, path, peer and a next step",
		needs: []Capability{Killing},
		run: func(x *rig) {
			s := x.dial()
			x.pair.Kill()
			ks := x.mixture(4)
			s.submit(ks...)
			s.await(ks...)
			x.allExplained(ks)
		}},
	{name: "a frozen target", demands: "the fault of a request that a frozen target did not answer has code, stage, path, peer and a next step",
		needs: []Capability{Freezing, StallLimit},
		run: func(x *rig) {
			s := x.dial()
			s.do(x.mixture(2)...)
			x.freeze()
			ks := x.mixture(4)
			s.submit(ks...)
			s.await(ks...)
			x.allExplained(ks)
			x.thaw()
		}},
}

// allExplained looks at the faults of requests that a transport took.
func (x *rig) allExplained(ks []*task) {
	x.Helper()
	for _, k := range ks {
		if k.fault != withdrawn {
			x.explained(k.fault)
		}
	}
}

// explained checks that a fault tells its reader all that he needs.
func (x *rig) explained(f *xfer.Fault) {
	x.Helper()
	if f == nil {
		x.fail("there is no fault")
		return
	}
	name, peer := x.pair.Initiator.Transport.Name(), x.peer.Desc().Name
	switch {
	case f.Code == xfer.OK || f.Code.Name() == "Unknown":
		x.fail("the code is %d: %v", f.Code, f)
	case f.Stage == "":
		x.fail("there is no stage: %v", f)
	case f.Path != name && !strings.HasPrefix(f.Path, name+" "):
		x.fail("the path is %q, want %q, with a rail behind it where there is one: %v", f.Path, name, f)
	case f.Peer != peer:
		x.fail("the peer is %q, want %q: %v", f.Peer, peer, f)
	case strings.Contains(f.Error(), "\n"):
		x.fail("it has more than one line: %q", f.Error())
	case f.NextStep() == "":
		x.fail("there is no next step: %v", f)
	}
}
