package interop

import (
	"fmt"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
)

// TestR_TCP_3_CxxTargetRejectsOneInAHundredOfTenThousand: exactly those fail, and the batch does not take minutes. The
// target ends the connection at each of them, and so discards answers of others that had been executed.
func TestR_TCP_3_CxxTargetRejectsOneInAHundredOfTenThousand(t *testing.T) {
	needCxx(t)
	const count, block, limit = 10_000, 4096, 10 * time.Second
	var bad []int
	for i := 37; i < count; i += 100 {
		bad = append(bad, i)
	}
	r := newRejection(t, nil, count, block)
	clean := r.prepare(t, moonpath.OpWrite, 0, count)
	start := time.Now()
	batch, err := run(t, r.engine, clean.requests)
	t.Logf("without bad requests: %v", time.Since(start))
	r.verify(t, clean, batch, err)
	for _, stale := range []bool{false, true} {
		for _, op := range bothOps {
			t.Run(fmt.Sprintf("stale %t/%v", stale, op), func(t *testing.T) {
				b := r.prepare(t, op, 0, count, bad...)
				if stale {
					r.deceive(t)
				}
				start := time.Now()
				batch, err := run(t, r.engine, b.requests)
				took := time.Since(start)
				t.Logf("with %d bad requests: %v", len(bad), took)
				if took > limit {
					t.Errorf("%d requests of which %d are bad took %v, want at most %v", count, len(bad), took, limit)
				}
				r.verify(t, b, batch, err)
			})
		}
	}
}
