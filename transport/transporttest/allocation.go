package transporttest

import (
	"fmt"
	"testing"

	"github.com/moonpath-io/moonpath/transport"
)

// allocation has one case per size.
func allocation() (cases []testCase) {
	for _, n := range []uint64{64, transport.SmallLimit, 1 << 20} {
		cases = append(cases, testCase{
			name:    fmt.Sprintf("chunks of %d bytes", n),
			demands: "in steady state nothing is allocated per chunk, at either end",
			needs:   []Capability{ZeroAllocation},
			run:     func(x *rig) { x.allocates(n) },
		})
	}
	return cases
}

func (x *rig) allocates(n uint64) {
	if raceDetector {
		x.Skip("the race detector allocates, too; run the suite without -race as well")
	}
	const each, rounds = 8, 5
	s := x.dial()
	for _, op := range x.ops() {
		var ks []*task
		for range each {
			k := x.task(op, n)
			k.quick = true
			ks = append(ks, k)
		}
		s.do(ks...)
		runs := 200
		if n >= 1<<20 {
			runs = 20
		}
		// Lanes and tables grow as work needs them, so one round without allocations is enough, and none is too few.
		got := 0.0
		for range rounds {
			if got = testing.AllocsPerRun(runs, func() { s.again(ks...) }); got < 1 {
				break
			}
		}
		if got >= 1 {
			x.fail("%v allocations per %d chunks in the last of %d rounds, each chunk a %s", got, each, rounds, ks[0])
		}
	}
}
