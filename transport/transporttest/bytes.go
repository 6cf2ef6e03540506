package transporttest

import (
	"fmt"
	"math"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// lengths are where implementations change their ways: pages, small requests, buffers of 64 KiB, pieces of 1 and 4 MiB.
var lengths = []uint64{1, 2, 7, 4095, 4096, 4097, transport.SmallLimit - 1, transport.SmallLimit, transport.SmallLimit + 1, 65535, 65536, 65537,
	256<<10 + 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 4<<20 - 1, 4 << 20, 4<<20 + 1}

// sizes are cases that differ in the length alone.
func sizes() (cases []testCase) {
	for _, n := range lengths {
		cases = append(cases, testCase{
			name:    fmt.Sprintf("%d bytes", n),
			demands: fmt.Sprintf("%d bytes arrive, in both directions and at any alignment, and not a byte beside them is touched", n),
			run: func(x *rig) {
				s := x.dial()
				for _, op := range x.ops() {
					for _, skew := range [][2]uint64{{0, 0}, {1, 0}, {0, 3}, {63, 5}} {
						s.do(x.skewed(op, n, skew[0], skew[1]))
					}
				}
			},
		})
	}
	return cases
}

var borders = []testCase{
	{name: "last byte", demands: "the last bytes of a region can be reached",
		run: func(x *rig) {
			s := x.dial()
			for _, op := range x.ops() {
				for _, n := range []uint64{1, 4096, 60000} {
					near := x.memory("initiator's second", &x.pair.Initiator, 128<<10, false)
					far := x.memory("target's second", &x.pair.Target, 128<<10, true)
					x.publish()
					s.do(x.between(op, n, near, near.tail(n), far, far.tail(n)))
				}
			}
		}},
	{name: "beyond a region", demands: "a range that is not wholly inside one registration of the target is refused, and moves nothing",
		run: func(x *rig) {
			lone := x.memory("target's second", &x.pair.Target, 128<<10, true)
			x.publish()
			start, s := uint64(lone.region.Addr), x.dial()
			end := start + lone.region.Len
			for _, op := range x.ops() {
				for _, r := range []span{
					{end, 1}, {end - 1, 2}, {start - 1, 1}, {start - 1, 2}, {end - 1, 100_000}, {start - 100, 200 << 10},
					{8, 8}, {math.MaxUint64, 1}, {math.MaxUint64 - 10, 4096}, {1 << 60, 1 << 20},
				} {
					k := x.outside(op, r.len, r.off)
					s.submit(k)
					s.await(k)
					x.refusedWith(xfer.Refused, k)
				}
				s.do(x.between(op, 1, x.near, x.near.place(1, 0), lone, lone.place(1, 0)))
			}
		}},
	{name: "private memory", demands: "a registration that peers may not reach is not reached",
		run: func(x *rig) {
			private, s := x.memory("target's private", &x.pair.Target, 512<<10, false), x.dial()
			for _, op := range x.ops() {
				for _, n := range []uint64{1, 40_000} {
					at := private.place(n, 0)
					private.guard(span{at, n})
					k := x.outside(op, n, uint64(private.region.At(at)))
					s.submit(k)
					s.await(k)
					x.refusedWith(xfer.Refused, k)
				}
			}
		}},
	{name: "many lengths at once", demands: "requests of all lengths that are under way together arrive each at its place",
		run: func(x *rig) {
			s, ops := x.dial(), x.ops()
			var ks []*task
			for i := range uint64(300) {
				ks = append(ks, x.skewed(ops[i%uint64(len(ops))], 1+(i*i*131)%70_000, i%64, i*7%64))
			}
			s.do(ks...)
		}},
}
