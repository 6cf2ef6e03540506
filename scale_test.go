package moonpath_test

import (
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
)

// TestRegistrationTakesLinearTime registers and unregisters many buffers, with a peer that reads them all in
// between. Ten times the buffers take ten times the time, more or less; where every step handled all of them
// again it would be a hundred times.
func TestRegistrationTakesLinearTime(t *testing.T) {
	const few, many, length, limit = 1000, 10000, 256, 5 * time.Second
	addr, _ := foreign(t, many*2*length)
	for _, c := range []struct {
		name       string
		register   func(*moonpath.Engine, []moonpath.BufferEntry) error
		unregister func(*moonpath.Engine, []moonpath.Addr) error
	}{
		{
			"one call",
			func(e *moonpath.Engine, buffers []moonpath.BufferEntry) error {
				return e.RegisterLocalMemoryBatch(buffers, "cpu:0")
			},
			(*moonpath.Engine).UnregisterLocalMemoryBatch,
		},
		{
			"one call for each",
			func(e *moonpath.Engine, buffers []moonpath.BufferEntry) error {
				for _, b := range buffers {
					if err := e.RegisterLocalMemory(b.Addr, b.Length, "cpu:0", true); err != nil {
						return err
					}
				}
				return nil
			},
			func(e *moonpath.Engine, addrs []moonpath.Addr) error {
				for _, a := range addrs {
					if err := e.UnregisterLocalMemory(a); err != nil {
						return err
					}
				}
				return nil
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(n int) time.Duration {
				var buffers []moonpath.BufferEntry
				var addrs []moonpath.Addr
				for i := range n { // with gaps, in an order that is no order
					a := addr + moonpath.Addr(i*7919%n)*2*length
					buffers = append(buffers, moonpath.BufferEntry{Addr: a, Length: length})
					addrs = append(addrs, a)
				}
				e, peer := openEngine(t, nil), openEngine(t, nil)
				defer e.Close()
				defer peer.Close()
				start := time.Now()
				if err := c.register(e, buffers); err != nil {
					t.Fatal(err)
				}
				took := time.Since(start)

				// How long the description travels is the network's business, as long as it is not absurd.
				start = time.Now()
				d, err := peer.Segment(open(t, peer, e))
				if err != nil || len(d.Buffers) != n {
					t.Fatalf("the peer sees %d of %d buffers, %v", len(d.Buffers), n, err)
				}
				if opened := time.Since(start); opened > limit {
					t.Errorf("opening a segment of %d buffers takes %v", n, opened)
				}

				start = time.Now()
				if err := c.unregister(e, addrs); err != nil {
					t.Fatal(err)
				}
				return took + time.Since(start)
			}
			run(few) // code and memory are warm then
			small, large := time.Hour, time.Hour
			for range 3 {
				small, large = min(small, run(few)), min(large, run(many))
			}
			t.Logf("%d buffers: %v, %d buffers: %v", few, small, many, large)
			if large > 50*small {
				t.Errorf("%d buffers take %v, %d take %v: more than linear", few, small, many, large)
			}
			if large > limit {
				t.Errorf("%d buffers take %v", many, large)
			}
		})
	}
}
