//moonpath:hot

package obs

import (
	"math/bits"
	"sync/atomic"
)

const (
	subBits  = 5 // 32 buckets per power of two: a quantile is off by at most 1/64 of itself
	topBits  = 40
	buckets  = (topBits - subBits + 1) << subBits
	maxValue = 1<<topBits - 1 // about 18 minutes in nanoseconds
)

// Histogram counts durations in log-linear buckets. The zero value is ready; all methods may
// be called from any goroutine. It takes about 9 KiB.
type Histogram struct {
	counts [buckets]atomic.Uint64
	sum    atomic.Uint64
	max    atomic.Int64
}

// Record counts one duration in nanoseconds. A negative one, which a clock step can produce,
// counts as 0; one above 18 minutes counts in the last bucket.
func (h *Histogram) Record(ns int64) {
	ns = max(ns, 0)
	h.counts[bucketOf(min(ns, maxValue))].Add(1)
	h.sum.Add(uint64(ns))
	for seen := h.max.Load(); ns > seen; seen = h.max.Load() {
		if h.max.CompareAndSwap(seen, ns) {
			return
		}
	}
}

// Snapshot copies what has been recorded. A Record under way may be in it in part.
func (h *Histogram) Snapshot() *Distribution {
	d := &Distribution{Sum: h.sum.Load(), Max: h.max.Load()}
	for i := range h.counts {
		d.counts[i] = h.counts[i].Load()
		d.Count += d.counts[i]
	}
	return d
}

// bucketOf returns the bucket of n: the values below 32 have one each; above, the position
// of the highest bit selects a row of 32 and the five bits below it the bucket in the row.
func bucketOf(n int64) int {
	if n < 1<<subBits {
		return int(n)
	}
	shift := bits.Len64(uint64(n)) - subBits - 1
	return (shift+1)<<subBits + int(n>>shift) - 1<<subBits
}

// middleOf returns the value in the middle of a bucket.
func middleOf(bucket int) int64 {
	if bucket < 2<<subBits {
		return int64(bucket)
	}
	shift := bucket>>subBits - 1
	low := int64(bucket&(1<<subBits-1)|1<<subBits) << shift
	return low + 1<<shift/2
}
