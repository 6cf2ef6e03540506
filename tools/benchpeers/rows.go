package main

import "slices"

// row is what all rounds of a pair in a cell come to: medians, with the least and the most.
type row struct {
	Pair string `json:"pair"`
	cell
	Rounds               int      `json:"rounds"`
	BytesPerSecond       float64  `json:"bytes_per_second"`
	BytesPerSecondMin    float64  `json:"bytes_per_second_min"`
	BytesPerSecondMax    float64  `json:"bytes_per_second_max"`
	RequestsPerSecond    float64  `json:"requests_per_second"`
	RequestsPerSecondMin float64  `json:"requests_per_second_min"`
	RequestsPerSecondMax float64  `json:"requests_per_second_max"`
	CPUSecondsPerGB      float64  `json:"cpu_seconds_per_gb"`
	CPUSecondsPerGBMin   float64  `json:"cpu_seconds_per_gb_min"`
	CPUSecondsPerGBMax   float64  `json:"cpu_seconds_per_gb_max"`
	LatencyP50           *float64 `json:"latency_p50_us,omitempty"` // of a batch; only moonpath's tool reports it
	LatencyP99           *float64 `json:"latency_p99_us,omitempty"`
}

func newRow(pair string, c cell, samples []sample) row {
	r := row{Pair: pair, cell: c, Rounds: len(samples)}
	over := func(of func(sample) float64) (median, least, most float64) {
		values := make([]float64, len(samples))
		for i, s := range samples {
			values[i] = of(s)
		}
		return spread(values)
	}
	r.BytesPerSecond, r.BytesPerSecondMin, r.BytesPerSecondMax = over(
		func(s sample) float64 { return float64(s.bytes) / s.seconds })
	r.RequestsPerSecond, r.RequestsPerSecondMin, r.RequestsPerSecondMax = over(
		func(s sample) float64 { return float64(s.requests) / s.seconds })
	r.CPUSecondsPerGB, r.CPUSecondsPerGBMin, r.CPUSecondsPerGBMax = over(
		func(s sample) float64 { return s.cpuSeconds / (float64(s.bytes) / 1e9) })
	if p50, _, _ := over(func(s sample) float64 { return s.latency.p50 }); p50 > 0 {
		p99, _, _ := over(func(s sample) float64 { return s.latency.p99 })
		r.LatencyP50, r.LatencyP99 = &p50, &p99
	}
	return r
}

// spread sorts values, of which there is at least one.
func spread(values []float64) (median, least, most float64) {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2, values[0], values[n-1]
}

// rows are in the order of pairs, then of their cells.
func (c *campaign) rows(pairs []*pair) []row {
	var out []row
	for _, p := range pairs {
		for _, cell := range p.cells {
			if samples := c.samples[key{p.name, cell}]; len(samples) > 0 {
				out = append(out, newRow(p.name, cell, samples))
			}
		}
	}
	return out
}
