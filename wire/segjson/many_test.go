package segjson

import (
	"strconv"
	"testing"
)

// manyBuffers is the size that engines have to publish without being felt.
const manyBuffers = 10_000

func describe(buffers int) *Descriptor {
	d := documented()
	d.Buffers = make([]Buffer, buffers)
	for i := range d.Buffers {
		d.Buffers[i] = Buffer{Name: d.Name, Addr: 139975272349696 + uint64(i)<<21, Length: 1 << 20}
	}
	d.Moonpath.Runs = []BufferRun{{buffers, 1}}
	return d
}

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

func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{100, manyBuffers, 10 * manyBuffers} {
		b.Run("buffers="+strconv.Itoa(n), func(b *testing.B) {
			d := describe(n)
			dst := Append(nil, d)
			b.SetBytes(int64(len(dst)))
			b.ReportAllocs()
			for b.Loop() {
				dst = Append(dst[:0], d)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{100, manyBuffers, 10 * manyBuffers} {
		b.Run("buffers="+strconv.Itoa(n), func(b *testing.B) {
			text := Append(nil, describe(n))
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
