//go:build !race

package moonpath_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/moonpath-io/moonpath"
)

// TestAllocsOfTransfersOverTCPAreNone runs both ends in this process, so that what the target does counts too.
func TestAllocsOfTransfersOverTCPAreNone(t *testing.T) {
	target, source := openEngine(t, nil), openEngine(t, nil)
	there, here := alloc(t, target, 8<<20), alloc(t, source, 8<<20)
	id, pin := open(t, source, target), pinned(t, source, "tcp")

	for _, c := range []struct {
		block, requests uint64
		batches         int // of one round
	}{
		{4 << 10, 64, 200},
		{64 << 10, 16, 200},
		{1 << 20, 8, 50},
	} {
		for _, op := range []moonpath.Op{moonpath.OpWrite, moonpath.OpRead} {
			t.Run(fmt.Sprintf("%s/%dKiB/%d", op, c.block>>10, c.requests), func(t *testing.T) {
				b := newBatch(t, source, int(c.requests))
				requests := make([]moonpath.Request, c.requests)
				for i := range requests {
					off := uint64(i) * c.block
					requests[i] = moonpath.Request{Op: op, Pin: pin, Local: here.At(off), Len: c.block, Target: id, Remote: uint64(there.At(off))}
				}
				requireNoAllocs(t, c.batches, func() { transfer(t, b, requests...) })
			})
		}
	}
}

// requireNoAllocs fails if f allocates, anywhere in the process: if no round of n calls goes without. What the
// engine and the runtime allocate by the clock and not by the call (watchers, threads) spares some rounds.
func requireNoAllocs(t *testing.T, n int, f func()) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for range n {
		f() // connections are made, requests planned, buffers grown
	}
	counts := make([]uint64, 12)
	for i := range counts {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range n {
			f()
		}
		runtime.ReadMemStats(&after)
		counts[i] = after.Mallocs - before.Mallocs
	}
	if least := slices.Min(counts); least > 0 {
		t.Errorf("at least %d allocations in %d batches (rounds: %d), want none; -memprofile says where", least, n, counts)
	}
}
