//go:build !race

package obs

import "testing"

func TestAllocsOfTheHotPathAreNone(t *testing.T) {
	g := NewGroup().Group("tcp").Group("lane")
	counter, gauge, histogram := g.Counter("bytes"), g.Gauge("queued"), g.Histogram("latency_ns")
	recorder := NewRecorder(16)
	detail := &struct{ reason string }{"cost"}
	ns := int64(1)
	for name, f := range map[string]func(){
		"Counter.Add":      func() { counter.Add(1) },
		"Gauge.Add":        func() { gauge.Add(1) },
		"Gauge.Set":        func() { gauge.Set(1) },
		"Histogram.Record": func() { histogram.Record(ns); ns = ns*3%maxValue + 1 },
		"Recorder.Record":  func() { recorder.Record(Decision, "segment", detail) },
	} {
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
