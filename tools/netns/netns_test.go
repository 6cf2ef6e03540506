package main

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		name  string
		parse func([]byte) (float64, error)
		text  string
		want  float64
		fails string
	}{
		{"iperf", parseIperf, `{"end":{"sum_sent":{"bits_per_second":900},"sum_received":{"bits_per_second":800}}}`, 100, ""},
		{"iperf error", parseIperf, `{"error":"no route"}`, 0, "no route"},
		{"iperf nothing", parseIperf, `{"end":{}}`, 0, "received nothing"},
		{"iperf no JSON", parseIperf, `x`, 0, "iperf3 --json"},
		{"bench", parseBench, `{"bytes_per_second":5,"errors":0}`, 5, ""},
		{"bench errors", parseBench, `{"bytes_per_second":5,"errors":2}`, 0, "2 requests failed"},
		{"bench no JSON", parseBench, ``, 0, "moonpath bench --json"},
	} {
		got, err := test.parse([]byte(test.text))
		if got != test.want || (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%s: %v, %v; want %v, %q", test.name, got, err, test.want, test.fails)
		}
	}
}

func TestParseCongestion(t *testing.T) {
	const out = "0 0 10.0.0.1:1 10.0.0.2:2 bbr wscale:7,7 rto:201 bbr:(bw:1Mbps)\n0 0 10.0.0.1:3 10.0.0.2:2 bbr x\n0 0 10.0.0.1:5 10.0.0.2:2 reno x\n"
	if got := parseCongestion(out); got != "bbr, reno" {
		t.Errorf("%q", got)
	}
}

func TestPageJudgesMediansOfGatedRows(t *testing.T) {
	gated := cell{line{"10 ms", lines[0].path, 0}, "write", shape{4, 4, true}}
	open := gated
	open.gated = false
	p := page{environment: "env.", rows: []row{
		{cell: gated, moonpath: []float64{85e6, 91e6, 99e6}, iperf: []float64{100e6, 100e6, 1e6}, congestion: "bbr"},
		{cell: gated, moonpath: []float64{80e6, 89e6, 99e6}, iperf: []float64{100e6, 100e6, 1e6}, congestion: "bbr"},
		{cell: gated, skipped: errors.New("it rained")},
		{cell: open, moonpath: []float64{1e6}, iperf: []float64{100e6}, congestion: "bbr"},
	}}
	if held, missed := p.verdicts(); held != 1 || missed != 2 {
		t.Errorf("%d hold, %d missed; want 1 and 2", held, missed)
	}
	for _, want := range []string{"| 91 (85–99) |", "0.91", "holds", "0.89", "missed", "not measured: it rained", "0.01", "env."} {
		if !strings.Contains(p.String(), want) {
			t.Errorf("the page does not say %q:\n%s", want, p)
		}
	}
}

func TestOptions(t *testing.T) {
	o, err := parseOptions(nil, io.Discard)
	if err != nil || !o.whole() {
		t.Errorf("%+v, %v: without flags all is measured", o, err)
	}
	for _, bad := range [][]string{{"--rounds", "0"}, {"--duration", "1ms"}, {"--only", "("}, {"x"}, {"--y"}} {
		if _, err := parseOptions(bad, io.Discard); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if o, err := parseOptions([]string{"--only", "read"}, io.Discard); err != nil || o.whole() {
		t.Errorf("%+v, %v: a part is not the whole", o, err)
	}
}
