package obs

import "testing"

func BenchmarkCounterAdd(b *testing.B) {
	var c Counter
	b.ReportAllocs()
	for b.Loop() {
		c.Add(1)
	}
}

func BenchmarkHistogramRecord(b *testing.B) {
	var h Histogram
	ns := int64(1)
	b.ReportAllocs()
	for b.Loop() {
		h.Record(ns)
		ns = ns*3%maxValue + 1
	}
}
