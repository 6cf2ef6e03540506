package mem

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moonpath-io/moonpath/xfer"
)

func (n *node) depth() int {
	if n == nil {
		return 0
	}
	return 1 + max(n.left.depth(), n.right.depth())
}

// Whatever the order of registration, looking an address up takes few steps: about 2 log2 n, where a balanced
// tree would take 14.
func TestTreeStaysShallow(t *testing.T) {
	const n, limit = 10_000, 40
	rising := make([]Spec, n)
	for i := range rising {
		rising[i] = Spec{Addr: far + xfer.Addr(i)*4096, Len: 4096}
	}
	falling := slices.Clone(rising)
	slices.Reverse(falling)
	shuffled := slices.Clone(rising)
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for order, specs := range map[string][]Spec{"rising": rising, "falling": falling, "shuffled": shuffled} {
		var table Table
		rs := register(t, &table, specs...)
		if d := table.root.Load().depth(); d > limit {
			t.Errorf("%s: depth %d", order, d)
		}
		unregister(t, &table, rs[:n/2])
		if d := table.root.Load().depth(); d > limit || table.Count() != n/2 {
			t.Errorf("%s: depth %d of %d after removals", order, d, table.Count())
		}
	}
}
