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
