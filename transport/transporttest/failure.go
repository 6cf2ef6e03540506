package transporttest

//moonpath:goroutines

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

var failures = slices.Concat([]testCase{
	{name: "one bad among good, suspected", demands: "requests that the target refuses fail alone, when nothing published holds their memory",
		run: func(x *rig) {
			// The address is never mapped, so nobody can have registered it.
			x.badAmongGood(func(op xfer.Op, n uint64) *task { return x.outside(op, n, 64) })
		}},
	{name: "one bad among good, published", demands: "requests that the target refuses fail alone, when the description still lists their memory",
		run: func(x *rig) {
			gone := x.memory("target's second", &x.pair.Target, 1<<20, true)
			x.publish()
			x.unregister(&x.pair.Target, gone)
			x.badAmongGood(func(op xfer.Op, n uint64) *task { return x.outside(op, n, uint64(gone.region.Addr)) })
		}},
	{name: "local memory that is not mapped", demands: "a request whose local memory has been unmapped fails alone, and the process lives on",
		run: func(x *rig) {
			lost := x.lost("initiator's lost", &x.pair.Initiator, false)
			x.lostAmongGood(func(op xfer.Op, n uint64) *task {
				return x.blind(op, n, lost.region, 0, x.far.region, x.far.place(n, 0))
			})
		}},
	{name: "remote memory that is not mapped", demands: "a request whose remote memory has been unmapped fails alone, and both processes live on",
		run: func(x *rig) {
			lost := x.lost("target's lost", &x.pair.Target, true)
			x.publish()
			x.lostAmongGood(func(op xfer.Op, n uint64) *task {
				return x.blind(op, n, x.near.region, x.near.place(n, 0), lost.region, 0)
			})
		}},
	{name: "memory unregistered under traffic", demands: "once the target has unregistered memory nothing reaches it any more, and requests for it are refused",
		run: func(x *rig) {
			s, ops := x.dial(), x.ops()
			leaves := x.memory("target's second", &x.pair.Target, 8<<20, true)
			x.publish()
			var ks []*task
			for i := range uint64(60) {
				k := x.aimed(ops[i%uint64(len(ops))], 100_000, x.near, x.near.place(100_000, 0), uint64(leaves.region.At(i*100_000)))
				k.quick = true // some are done, some are not
				ks = append(ks, k)
			}
			s.submit(ks...)
			x.unregister(&x.pair.Target, leaves)
			// The engine frees the memory now; nothing may be written to what comes to lie there.
			leaves.guard(span{0, leaves.region.Len})
			s.await(ks...)
			k := x.outside(ops[0], 100, uint64(leaves.region.Addr))
			s.submit(k)
			s.await(k)
			x.refusedWith(xfer.Refused, k)
		}},
	{name: "target killed under traffic", demands: "all that is under way to a target that is killed comes back, and failed writes say whether they may have happened",
		needs: []Capability{Killing},
		run: func(x *rig) {
			s := x.dial()
			ks, late := append(x.bulk(), x.mixture(200)...), x.mixture(20)
			var submitter sync.WaitGroup
			submitter.Go(func() {
				for i := range ks {
					s.submit(ks[i])
				}
			})
			s.await(ks[len(ks)/4])
			x.pair.Kill()
			submitter.Wait()
			s.submit(late...)
			s.await(append(ks[:len(ks)/4:len(ks)/4], ks[len(ks)/4+1:]...)...)
			s.await(late...)
			x.allFailed(late)
		}},
	{name: "target killed, then quiesce", demands: "Quiesce returns although the target was killed, and promises no more than it can know",
		needs: []Capability{Killing},
		run: func(x *rig) {
			s, ks := x.dial(), x.bulk()
			s.submit(ks...)
			x.pair.Kill()
			ctx, cancel := context.WithTimeout(x.Context(), x.opt.Patience/2)
			defer cancel()
			s.quiesce(ctx)
		}},
	{name: "target frozen and thawed", demands: "a short standstill of the target costs no request",
		needs: []Capability{Freezing},
		run: func(x *rig) {
			s := x.dial()
			s.do(x.mixture(10)...)
			x.freeze()
			ks := x.mixture(50)
			s.submit(ks...)
			x.thaw()
			s.await(ks...)
			s.completed(ks...)
		}},
	{name: "a target that stays frozen", demands: "the transport itself ends what a frozen target does not answer, and says of writes that they may still happen",
		needs: []Capability{Freezing, StallLimit},
		run: func(x *rig) {
			s, ks := x.dial(), x.mixture(20)
			s.do(x.mixture(10)...)
			x.freeze()
			s.submit(ks...)
			s.await(ks...)
			x.allFailed(ks)
			x.thaw()
		}},
	{name: "target restarted", demands: "a route never reaches another life of its target, although that answers at the same address; a new route does",
		needs: []Capability{Restarting},
		run: func(x *rig) {
			s := x.dial()
			s.do(x.mixture(10)...)
			again := x.restart()
			late := x.mixture(20)
			s.submit(late...)
			s.await(late...)
			x.allFailed(late)
			s.quiesce(x.Context())
			for _, k := range late {
				if k.op == xfer.Write && k.stale.differs(k.far, 0) >= 0 {
					x.fail("the %s, which failed, was carried out by the new life", k)
				}
			}
			x.publish()
			x.dial().do(x.mixture(20)...)
			x.leases(again)
		}},
}, frozen(), killed())

// frozen are cases that differ in what had been done before.
func frozen() (cases []testCase) {
	for _, n := range []int{0, 10, 60} {
		cases = append(cases, testCase{
			name:    fmt.Sprintf("quiesce towards a target frozen after %d requests", n),
			demands: "Quiesce with a context that has ended returns although the target is frozen, and after the promise of quiet nothing happens when it thaws",
			needs:   []Capability{Freezing},
			run: func(x *rig) {
				s, before, ks := x.dial(), x.bulk(), x.bulk()
				s.do(x.mixture(n)...)
				s.submit(before...)
				x.freeze()
				s.submit(ks...)
				if s.quiesce(ended()) != transport.Unquiet {
					s.await(append(before, ks...)...)
				}
				x.thaw()
			},
		})
	}
	return cases
}

// killed are cases that differ in what had been done before.
func killed() (cases []testCase) {
	for _, n := range []int{0, 1, 7, 60} {
		cases = append(cases, testCase{
			name:    fmt.Sprintf("target killed after %d requests", n),
			demands: "work for a target that is gone comes back with a fault, and does so soon; so does what was under way",
			needs:   []Capability{Killing},
			run: func(x *rig) {
				s := x.dial()
				s.do(x.mixture(n)...)
				ks, late := x.bulk(), x.mixture(20)
				s.submit(ks...)
				x.pair.Kill()
				s.submit(late...)
				s.await(append(ks, late...)...)
				x.allFailed(late)
			},
		})
	}
	return cases
}

func (x *rig) allFailed(ks []*task) {
	x.Helper()
	for _, k := range ks {
		if k.fault == nil {
			x.fail("the %s was done although nobody was there", k)
		}
	}
}

// badAmongGood runs good requests with some that have to be refused among them.
func (x *rig) badAmongGood(bad func(op xfer.Op, n uint64) *task) {
	x.Helper()
	s, ops := x.dial(), x.ops()
	for _, n := range []uint64{100, 40_000} {
		var bads []*task
		good := x.mixture(80)
		all := append([]*task(nil), good...)
		for i, op := range ops {
			k := bad(op, n)
			bads = append(bads, k)
			at := 20 + 30*i
			all = append(all[:at:at], append([]*task{k}, all[at:]...)...)
		}
		s.submit(all...)
		s.await(all...)
		s.completed(good...)
		for _, k := range bads {
			x.refusedWith(xfer.Refused, k)
		}
	}
}

// lostAmongGood runs good requests with some among them that touch memory which is not there.
func (x *rig) lostAmongGood(lost func(op xfer.Op, n uint64) *task) {
	x.Helper()
	s := x.dial()
	for _, op := range x.ops() {
		for _, n := range []uint64{100, 40_000} {
			good, k := x.mixture(40), lost(op, n)
			all := append(append(good[:20:20], k), good[20:]...)
			s.submit(all...)
			s.await(all...)
			s.completed(good...)
			if k.fault == nil {
				x.fail("the %s was done; its memory is not there", k)
			}
		}
	}
}

// lost is registered memory that nobody can touch.
func (x *rig) lost(name string, e *End, remote bool) *arena {
	x.Helper()
	a := x.memory(name, e, 1<<20, remote)
	if err := a.lose(); err != nil {
		x.Fatalf("memory of the test cannot be made inaccessible: %v", err)
	}
	return a
}

// blind makes a request whose memory the suite must not look at.
func (x *rig) blind(op xfer.Op, n uint64, near *mem.Region, off uint64, far *mem.Region, there uint64) *task {
	k := &task{op: op, local: near, off: off, remote: uint64(far.At(there)), len: n, left: n, queue: transport.Bulk, quick: true, ended: make(chan struct{}, 1)}
	if n <= transport.SmallLimit {
		k.queue = transport.Small
	}
	x.tasks = append(x.tasks, k)
	return k
}

// restart replaces the target, whose memory the new life registers at the same addresses.
func (x *rig) restart() *mem.Region {
	x.Helper()
	x.pair.Target = x.pair.Restart()
	x.peer.last.Store(x.pair.Target.describe())
	old := x.far.region
	rs, err := x.pair.Target.Regions.Register([]mem.Spec{{Addr: old.Addr, Len: old.Len, Remote: true}})
	if err != nil {
		x.Fatalf("memory of the test cannot be registered: %v", err)
	}
	if err := x.pair.Target.Transport.Attach(x.Context(), rs); err != nil {
		x.fatal("Attach after a restart: %v", err)
	}
	x.peer.last.Store(x.describe())
	return rs[0]
}

// unregister takes memory of an end away, as an engine does.
func (x *rig) unregister(e *End, a *arena) {
	x.Helper()
	ctx, cancel := x.shortly()
	defer cancel()
	rs := []*mem.Region{a.region}
	if err := e.Regions.Close(ctx, rs); err != nil {
		x.fatal("memory cannot be unregistered: %d leases are not given back (%v)", a.region.InUse(), err)
	}
	if err := e.Transport.Detach(ctx, rs); err != nil {
		x.fatal("Detach of memory that no chunk uses: %v", err)
	}
	e.Regions.Remove(rs)
}
