//go:build !race

package mem

import (
	"testing"

	"github.com/moonpath-io/moonpath/xfer"
)

func TestAllocsOfLeases(t *testing.T) {
	var table Table
	specs := make([]Spec, 1000)
	for i := range specs {
		specs[i] = Spec{Addr: far + xfer.Addr(i)*4096, Len: 4096}
	}
	rs := register(t, &table, specs...)
	at := 0
	got := testing.AllocsPerRun(1000, func() {
		at = (at + 37) % len(rs)
		l, err := table.Acquire(rs[at].Addr+100, 64)
		if err != nil {
			t.Fatal(err)
		}
		l.More(3)
		_ = l.View(100, 64)
		l.Release(4)
	})
	if got != 0 {
		t.Errorf("%v allocations per lease, want 0", got)
	}
}

func TestAllocsOfCopy(t *testing.T) {
	dst, src := make([]byte, 4096), make([]byte, 4096)
	got := testing.AllocsPerRun(1000, func() {
		if _, err := Copy(dst, src); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations per copy, want 0", got)
	}
}
