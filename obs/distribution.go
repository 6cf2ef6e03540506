package obs

import "math"

// Distribution is a histogram at one moment, or several merged. The zero value is empty. It
// is an ordinary value: not safe for use while another goroutine merges into it.
type Distribution struct {
	Count  uint64
	Sum    uint64 // nanoseconds
	Max    int64  // nanoseconds, exact
	counts [buckets]uint64
}

// Merge adds what other holds.
func (d *Distribution) Merge(other *Distribution) {
	d.Count += other.Count
	d.Sum += other.Sum
	d.Max = max(d.Max, other.Max)
	for i, n := range other.counts {
		d.counts[i] += n
	}
}

// Quantile returns a duration in nanoseconds that is within 1/64 of the q-quantile: the
// smallest recorded one that at least the fraction q of all does not exceed. It is 0 for an
// empty distribution, never above Max, and exact below 64 ns. q is limited to 0..1.
func (d *Distribution) Quantile(q float64) int64 {
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(d.Count)))
	rank = min(max(rank, 1), d.Count)
	var below uint64
	for i, n := range d.counts {
		below += n
		if n > 0 && below >= rank {
			return min(middleOf(i), d.Max)
		}
	}
	return 0
}

// P50 returns the median in nanoseconds, as Quantile does.
func (d *Distribution) P50() int64 { return d.Quantile(0.50) }

// P99 returns the 99th percentile in nanoseconds, as Quantile does.
func (d *Distribution) P99() int64 { return d.Quantile(0.99) }

// P999 returns the 99.9th percentile in nanoseconds, as Quantile does.
func (d *Distribution) P999() int64 { return d.Quantile(0.999) }

// Mean returns the average in nanoseconds, 0 for an empty distribution.
func (d *Distribution) Mean() int64 {
	if d.Count == 0 {
		return 0
	}
	return int64(d.Sum / d.Count)
}
