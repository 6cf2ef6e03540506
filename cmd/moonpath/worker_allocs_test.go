//go:build !race

package main

import (
	"context"
	"testing"

	"github.com/moonpath-io/moonpath"
)

// TestAllocsOfAMeasuredBatch: what bench measures is the engine, not the garbage collector. Both ends are counted.
func TestAllocsOfAMeasuredBatch(t *testing.T) {
	const size = 64 << 10
	p := newPair(t, size)
	for _, op := range []moonpath.Op{moonpath.OpWrite, moonpath.OpRead} {
		w := p.worker(t, layout{block: 1 << 10, batch: 16, threads: 1, local: size, remote: size, cold: true}, op)
		ctx := context.Background()
		batch := func() {
			if err := w.once(ctx); err != nil {
				t.Fatal(err)
			}
			w.at.advance()
			w.place()
			w.latency.Record(1)
		}
		for range 100 {
			batch() // connections, plans, scratch space
		}
		if n := testing.AllocsPerRun(1000, batch); n != 0 {
			t.Errorf("%s: %v allocations for a batch of 16, want none", op, n)
		}
	}
}
