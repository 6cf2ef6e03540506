//go:build !race

package multi

import (
	"testing"

	"github.com/moonpath-io/moonpath/transport/fake"
)

func TestAllocsOfABatchThatIsUsedAgain(t *testing.T) {
	for name, o := range map[string]fake.Options{
		"one chunk each":    {Name: "path", Unrecorded: true},
		"eight chunks each": {Name: "path", Unrecorded: true, Piece: 64},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.install(o)
			to := r.open("peer", []string{"path"})
			rs := writes(to, r.memory(64*512), 64, 512)
			b := r.batch(64)
			ctx := t.Context()
			r.submit(b, rs...) // opens the path
			if err := b.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			got := testing.AllocsPerRun(500, func() {
				if err := b.Reset(); err != nil {
					t.Fatal(err)
				}
				if n, err := b.Submit(ctx, rs); n != 64 || err != nil {
					t.Fatal(n, err)
				}
				if err := b.Wait(ctx); err != nil {
					t.Fatal(err)
				}
				for i := range rs {
					if s, err := b.Status(i); err != nil || s.Bytes != 512 {
						t.Fatal(s, err)
					}
				}
			})
			if got != 0 {
				t.Errorf("%v allocations per batch of 64 requests, want 0", got)
			}
		})
	}
}
