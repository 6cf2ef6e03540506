package obs

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBucketsCoverAllValuesInOrder(t *testing.T) {
	last := -1
	check := func(n int64) {
		t.Helper()
		b := bucketOf(n)
		if b < last || b > last+1 || b >= buckets {
			t.Fatalf("value %d is in bucket %d after bucket %d", n, b, last)
		}
		last = b
		if off := math.Abs(float64(middleOf(b) - n)); off > float64(n)/64 {
			t.Fatalf("value %d is reported as %d", n, middleOf(b))
		}
		if n < 64 && middleOf(b) != n {
			t.Fatalf("value %d is reported as %d, want it exact", n, middleOf(b))
		}
	}
	for n := range int64(1 << 14) {
		check(n)
	}
	for shift := 14; shift < topBits; shift++ { // both ends of every bucket from there on
		for sub := range int64(1 << subBits) {
			width := int64(1) << (shift - subBits)
			low := 1<<shift + sub*width
			check(low)
			check(low + width - 1)
		}
	}
	if last != buckets-1 {
		t.Errorf("the last bucket used is %d of %d", last, buckets)
	}
}

func TestQuantilesAreWithinOneInSixtyFour(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var h Histogram
	values := make([]int64, 10000)
	for i := range values {
		values[i] = int64(math.Exp(random.Float64() * 25)) // 1 ns to 72 s
		h.Record(values[i])
	}
	slices.Sort(values)
	d := h.Snapshot()
	for _, q := range []float64{0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1} {
		rank := max(int(math.Ceil(q*float64(len(values)))), 1)
		exact, got := values[rank-1], d.Quantile(q)
		if math.Abs(float64(got-exact)) > float64(exact)/64 {
			t.Errorf("quantile %v is %d, exact %d", q, got, exact)
		}
	}
	if d.P50() != d.Quantile(0.5) || d.P99() != d.Quantile(0.99) || d.P999() != d.Quantile(0.999) {
		t.Error("the named quantiles differ from Quantile")
	}
	if d.Max != values[len(values)-1] || d.Count != uint64(len(values)) {
		t.Errorf("max %d, count %d", d.Max, d.Count)
	}
}

func TestQuantileOfFewValues(t *testing.T) {
	for _, c := range []struct {
		name     string
		values   []int64
		q        float64
		want     int64
		max, avg int64
	}{
		{"none", nil, 0.5, 0, 0, 0},
		{"one", []int64{50}, 0.5, 50, 50, 50},
		{"below all", []int64{10, 20, 30}, -1, 10, 30, 20},
		{"median of three", []int64{30, 10, 20}, 0.5, 20, 30, 20},
		{"median of four", []int64{10, 20, 30, 60}, 0.5, 20, 60, 30},
		{"above all", []int64{10, 20, 30}, 2, 30, 30, 20},
		{"negative counts as zero", []int64{-5}, 1, 0, 0, 0},
		{"never above the largest", []int64{1 << 30}, 1, 1 << 30, 1 << 30, 1 << 30},
		{"beyond the last bucket", []int64{1 << 41}, 1, middleOf(buckets - 1), 1 << 41, 1 << 41},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h Histogram
			for _, ns := range c.values {
				h.Record(ns)
			}
			d := h.Snapshot()
			if got := d.Quantile(c.q); got != c.want || d.Max != c.max || d.Mean() != c.avg {
				t.Errorf("quantile %v is %d, max %d, mean %d, want %d, %d, %d", c.q, got, d.Max, d.Mean(), c.want, c.max, c.avg)
			}
		})
	}
}

func TestMergeEqualsRecordingTogether(t *testing.T) {
	var a, b, both Histogram
	for i := range int64(1000) {
		a.Record(i * 7)
		both.Record(i * 7)
		b.Record(i * 1000)
		both.Record(i * 1000)
	}
	var merged Distribution
	merged.Merge(a.Snapshot())
	merged.Merge(b.Snapshot())
	if diff := cmp.Diff(both.Snapshot(), &merged, cmp.AllowUnexported(Distribution{})); diff != "" {
		t.Error(diff)
	}
}

func TestHistogramRecordsFromManyGoroutines(t *testing.T) {
	var h Histogram
	var wg sync.WaitGroup
	for g := range int64(8) {
		wg.Go(func() {
			for i := range int64(1000) {
				h.Record(g*1000 + i)
				if i%100 == 0 {
					h.Snapshot()
				}
			}
		})
	}
	wg.Wait()
	if d := h.Snapshot(); d.Count != 8000 || d.Sum != 7999*8000/2 || d.Max != 7999 {
		t.Errorf("count %d, sum %d, max %d", d.Count, d.Sum, d.Max)
	}
}
