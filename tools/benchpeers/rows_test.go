package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRowsAreMediansWithTheirSpread(t *testing.T) {
	samples := []sample{
		{bytes: 4e9, requests: 400, seconds: 2, cpuSeconds: 2, latency: latency{50, 90}},
		{bytes: 9e9, requests: 900, seconds: 1, cpuSeconds: 0.9, latency: latency{70, 80}},
		{bytes: 1e9, requests: 100, seconds: 1, cpuSeconds: 0.3, latency: latency{60, 85}},
	}
	got, err := json.Marshal(newRow("tcp", cell{"write", 65536, 16, 2}, samples))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"pair":"tcp","op":"write","block_bytes":65536,"batch":16,"submitters":2,"rounds":3,` +
		`"bytes_per_second":2000000000,"bytes_per_second_min":1000000000,"bytes_per_second_max":9000000000,` +
		`"requests_per_second":200,"requests_per_second_min":100,"requests_per_second_max":900,` +
		`"cpu_seconds_per_gb":0.3,"cpu_seconds_per_gb_min":0.1,"cpu_seconds_per_gb_max":0.5,` +
		`"latency_p50_us":60,"latency_p99_us":85}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	if r := newRow("yardstick", cell{}, samples[:2]); r.BytesPerSecond != 5.5e9 {
		t.Errorf("median of two: %g, want their mean", r.BytesPerSecond)
	}
	if r := newRow("yardstick", cell{}, []sample{{bytes: 1, requests: 1, seconds: 1}}); r.LatencyP50 != nil || r.LatencyP99 != nil {
		t.Error("a pair without latencies has some")
	}
}

func TestMatrix(t *testing.T) {
	cells := matrix(func(int) bool { return true })
	if len(cells) != 30 {
		t.Errorf("%d cells, want 5 shapes × 2 directions × 3 numbers of submitters", len(cells))
	}
	for _, c := range cells {
		if c.Block*c.Batch*c.Submitters > bufferBytes {
			t.Errorf("%v does not fit the buffer of a target", c)
		}
	}
	if n := len(matrix(func(block int) bool { return block == 4*kib })); n != 12 {
		t.Errorf("%d cells of 4 KiB, want 12", n)
	}
	want := []cell{{"copy", 4 * kib, 1, 1}, {"copy", 64 * kib, 1, 1}, {"copy", mib, 1, 1}, {"copy", 16 * mib, 1, 1}}
	if diff := cmp.Diff(want, copies(cells)); diff != "" {
		t.Errorf("copies (-want +got):\n%s", diff)
	}
}
