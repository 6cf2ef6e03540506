package interop

import (
	"fmt"
	"testing"

	"github.com/moonpath-io/moonpath"
)

// TestCxxTargetRejectsManyInARow has bad requests one behind the other, so that a connection after the other ends without
// an answer in between. The good ones behind and before them complete all the same: a peer that refuses is no peer that
// is dead.
func TestCxxTargetRejectsManyInARow(t *testing.T) {
	needCxx(t)
	const count, first, last, block = 300, 40, 160, 4096
	var bad []int
	for i := first; i < last; i++ {
		bad = append(bad, i)
	}
	for _, protocol := range []string{"2", "1"} {
		t.Run("v"+protocol, func(t *testing.T) {
			r := newRejection(t, map[string]string{"tcp.protocol": protocol}, count, block)
			for _, stale := range []bool{false, true} {
				for _, op := range []moonpath.Op{moonpath.OpWrite, moonpath.OpRead} {
					t.Run(fmt.Sprintf("stale %t/%v", stale, op), func(t *testing.T) { r.check(t, stale, op, count, bad...) })
				}
			}
		})
	}
}
