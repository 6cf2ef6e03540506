package main

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"
)

const cxxLog = `WARNING: Logging before InitGoogleLogging() is written to STDERR
E1130 22:41:43.509006 20758 transfer_metadata.cpp:1098] Local segment descriptor not found
I1130 22:41:44.560001 20761 transfer_engine_bench.cpp:440] Worker 0 stopped!
I1130 22:41:44.561584 20758 transfer_engine_bench.cpp:569] Test completed: duration 1.05, batch count 63, throughput 0.062803667 GB/s
I1130 22:41:44.570000 20758 transfer_metadata.cpp:616] removeSegmentDesc 127.0.0.1:16401 finish
`

func TestParseResults(t *testing.T) {
	c := cell{"write", 65536, 16, 2}
	tests := []struct {
		name    string
		parse   func() (sample, error)
		want    sample
		wantErr string
	}{
		{"C++", func() (sample, error) { return parseCxx([]byte(cxxLog), c) },
			sample{bytes: 63 * 16 * 65536, requests: 63 * 16, seconds: 1.05187}, ""},
		{"C++ that failed", func() (sample, error) {
			return parseCxx([]byte("I1130 22:41:47.3 21062 transfer_engine_bench.cpp:429] FAILED\n"), c)
		}, sample{}, "no result: I1130 22:41:47.3 21062 transfer_engine_bench.cpp:429] FAILED"},
		{"C++ without a batch", func() (sample, error) {
			return parseCxx([]byte("Test completed: duration 1.05, batch count 0, throughput 0.000000000 GB/s"), c)
		}, sample{}, "nothing to measure"},
		{"C++ in another unit", func() (sample, error) {
			return parseCxx([]byte("Test completed: duration 1.05, batch count 63, throughput 0.06 GiB/s"), c)
		}, sample{}, "no result"},
		{"moonpath", func() (sample, error) {
			return parseMoonpath([]byte(`{"op":"write","requests":20,"bytes":1310720,"seconds":0.5,"latency_us":{"p50":1.5,"p99":2,"p999":3},"errors":0}`))
		}, sample{bytes: 1310720, requests: 20, seconds: 0.5, latency: latency{1.5, 2}}, ""},
		{"moonpath with failures", func() (sample, error) {
			return parseMoonpath([]byte(`{"requests":20,"bytes":1310720,"seconds":0.5,"errors":3}`))
		}, sample{}, "3 of 20 requests failed"},
		{"moonpath that says nothing", func() (sample, error) { return parseMoonpath(nil) }, sample{}, "moonpath bench --json"},
		{"moonpath that moved nothing", func() (sample, error) { return parseMoonpath([]byte(`{"seconds":1}`)) }, sample{}, "nothing to measure"},
		{"yardstick", func() (sample, error) {
			return parseYardstick([]byte(`{"requests":20,"bytes":1310720,"seconds":0.5,"cpu_seconds":0.1}`))
		}, sample{bytes: 1310720, requests: 20, seconds: 0.5}, ""},
		{"yardstick that says something else", func() (sample, error) { return parseYardstick([]byte("write 3 GB/s")) },
			sample{}, "yardstick init --json"},
		{"iperf3", func() (sample, error) {
			return parseIperf([]byte(`{"end":{"sum_sent":{"bytes":1,"seconds":9},"sum_received":{"bytes":6553600,"seconds":2}}}`), c)
		}, sample{bytes: 6553600, requests: 100, seconds: 2}, ""},
		{"iperf3 that failed", func() (sample, error) { return parseIperf([]byte(`{"error":"unable to connect"}`), c) },
			sample{}, "iperf3: unable to connect"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.parse()
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error %v, want %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got.seconds-tt.want.seconds) > 1e-4 {
				t.Errorf("%g s, want %g", got.seconds, tt.want.seconds)
			}
			got.seconds = tt.want.seconds
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestReadyLines(t *testing.T) {
	x := &cxx{}
	for _, line := range []string{
		"WARNING: Logging before InitGoogleLogging() is written to STDERR",
		"numa node num without a port before it",
		"Transfer Engine RPC using P2P handshake, listening on 127.0.0.1:16291",
		"TcpTransport: listen on port 15997",
	} {
		if x.takeSegment([]byte(line)) {
			t.Fatalf("the C++ target is ready after %q", line)
		}
	}
	if !x.takeSegment([]byte("DRAM is used, numa node num: 1")) || x.segment != "127.0.0.1:16291" {
		t.Errorf("the C++ target serves as %q", x.segment)
	}

	y := &yardstick{}
	if y.takeAddress([]byte(`warming up`)) || y.takeAddress([]byte(`{"addr":"127.0.0.1:1"}`)) {
		t.Error("the yardstick is ready without an address")
	}
	if !y.takeAddress([]byte(`{"addr":"127.0.0.1:1","base":140448114933760}`)) || y.base != 140448114933760 {
		t.Errorf("the yardstick serves %d", y.base)
	}

	m := &moonpath{}
	if m.takeSegment([]byte(`time=... level=INFO msg="listening"`)) || m.takeSegment([]byte(`{}`)) {
		t.Error("moonpath is ready without a segment")
	}
	if !m.takeSegment([]byte(`{"segment":"127.0.0.1:15123","pid":1}`)) || m.segment != "127.0.0.1:15123" {
		t.Errorf("moonpath serves as %q", m.segment)
	}
}

func TestYardstickMeasuresItself(t *testing.T) {
	binary := t.TempDir() + "/yardstick"
	t.Chdir("../..")
	y := &yardstick{binary: binary}
	served, err := y.serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer served.stop()
	p := &pair{start: func(context.Context) (*target, error) { return served, nil }, initiate: y.initiate}
	s, err := p.measure(t.Context(), cell{"read", 65536, 16, 2}, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if s.bytes != s.requests*65536 || s.cpuSeconds <= 0 || s.seconds < 0.05 {
		t.Errorf("%+v", s)
	}
}

func TestMemcpyCopies(t *testing.T) {
	s, err := memcpy(t.Context(), cell{"copy", 16 * mib, 1, 1}, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if s.bytes != s.requests*16*mib || s.requests == 0 || s.seconds < 0.02 || s.cpuSeconds <= 0 {
		t.Errorf("%+v", s)
	}
}

func TestKernelHasNoSuffix(t *testing.T) {
	if k := kernel(); strings.Count(k, ".") != 1 || strings.ContainsAny(k, "-+ ") {
		t.Errorf("kernel %q, want two numbers", k)
	}
}
