//go:build !race

package segjson

import "testing"

func TestAllocsOfAppendDoNotGrowWithBuffers(t *testing.T) {
	d := describe(manyBuffers)
	dst := Append(nil, d)
	if got := testing.AllocsPerRun(5, func() { dst = Append(dst[:0], d) }); got != 0 {
		t.Errorf("%v allocations with enough capacity, want none", got)
	}
}

// Only the slice of buffers may grow, by doubling; nothing may be allocated per entry.
func TestAllocsOfParseDoNotGrowWithBuffers(t *testing.T) {
	text := Append(nil, describe(manyBuffers))
	got := testing.AllocsPerRun(5, func() {
		if _, err := Parse(text); err != nil {
			t.Fatal(err)
		}
	})
	if got > 100 {
		t.Errorf("%v allocations for %d buffers, want at most 100", got, manyBuffers)
	}
}
