//go:build !race

package mem

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/xfer"
)

// A table that copies or searches itself at each insertion takes a hundred times as long for ten times the regions,
// on any machine. One that does not may be held up by others, so it has several attempts.
func TestRegistrationIsLinear(t *testing.T) {
	const attempts, limit = 6, 30
	for name, call := range map[string]func(t *testing.T, specs []Spec){
		"in one call": func(t *testing.T, specs []Spec) { register(t, new(Table), specs...) },
		"one by one": func(t *testing.T, specs []Spec) {
			var table Table
			for i := range specs {
				rs := register(t, &table, specs[i])
				if i%4 == 0 {
					unregister(t, &table, rs)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			took := func(n int) time.Duration {
				specs := make([]Spec, n)
				for i := range specs {
					specs[i] = Spec{Addr: far + xfer.Addr(i)*4096, Len: 4096, Remote: true}
				}
				runtime.GC()
				begin := time.Now()
				call(t, specs)
				return time.Since(begin)
			}
			least := math.Inf(1)
			for range attempts {
				few, many := took(10_000), took(100_000)
				ratio := float64(many) / float64(few)
				t.Logf("10,000 in %v, 100,000 in %v: %.1f times", few, many, ratio)
				if least = min(least, ratio); least <= limit {
					return
				}
			}
			t.Errorf("100,000 regions take at least %.1f times as long as 10,000; want about 10, at most %d", least, limit)
		})
	}
}
