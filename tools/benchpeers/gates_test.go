package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// goodRows are rows by which every gate holds with room to spare: C++ moves 1 unit, moonpath 20, the yardstick 20,
// iperf3 10.
func goodRows(rounds int) []row {
	rates := map[string]float64{
		tcp: 20, tcpToCxx: 5, cxxToTCP: 1, cxxNoPoolToTCP: 0.5, cxxPool: 1, cxxNoPool: 0.5, yardsticks: 20,
	}
	cpu := map[string]float64{
		tcp: 0.1, tcpToCxx: 0.2, cxxToTCP: 1, cxxNoPoolToTCP: 2, cxxPool: 1, cxxNoPool: 2, yardsticks: 0.1,
	}
	p50, p99 := 50.0, 400.0
	var rows []row
	for pair, rate := range rates {
		for _, c := range matrix(func(int) bool { return true }) {
			r := row{Pair: pair, cell: c, Rounds: rounds, CPUSecondsPerGB: cpu[pair],
				BytesPerSecond: rate, RequestsPerSecond: rate / float64(c.Block)}
			if pair == tcp {
				r.LatencyP50, r.LatencyP99 = &p50, &p99
			}
			rows = append(rows, r)
		}
	}
	for pair, n := range map[string]int{iperf1: 1, iperf2: 2, iperf4: 4} {
		rows = append(rows, row{Pair: pair, cell: cell{"write", mib, 1, n}, Rounds: rounds, BytesPerSecond: 10})
	}
	return append(rows, row{Pair: besideBulk, cell: smallAlone, Rounds: rounds, BytesPerSecond: 1,
		LatencyP50: &p50, LatencyP99: &p99})
}

// change applies f to the rows of a pair in cells that contain where.
func change(rows []row, pair, where string, f func(*row)) []row {
	out := slices.Clone(rows)
	n := 0
	for i := range out {
		if out[i].Pair == pair && strings.Contains(out[i].cell.String(), where) {
			f(&out[i])
			n++
		}
	}
	if n == 0 {
		panic(fmt.Sprintf("no row %s %s", pair, where))
	}
	return out
}

func scale(by float64) func(*row) {
	return func(r *row) { r.BytesPerSecond *= by; r.RequestsPerSecond *= by }
}

func scaleCPU(by float64) func(*row) { return func(r *row) { r.CPUSecondsPerGB *= by } }

// judged names the gates with a verdict by their numbers.
func judged(rows []row, v verdict) []int {
	var out []int
	for i, o := range judge(tcpGates(), rows) {
		if o.Verdict == v {
			out = append(out, i)
		}
	}
	return out
}

func TestEveryGateHoldsByGoodRows(t *testing.T) {
	for i, o := range judge(tcpGates(), goodRows(5)) {
		if o.Verdict != holds || o.count(holds) != len(o.Checks) || len(o.Checks) == 0 {
			t.Errorf("gate %d, %s, %s: %s, %+v", i, o.Name, o.Wants, o.Verdict, o.Checks)
		}
	}
}

func TestGatesMissExactlyWhatTheyWatch(t *testing.T) {
	good := goodRows(5)
	tests := []struct {
		name string
		rows []row
		want []int // numbers of gates that are missed
	}{
		{"iperf3 is faster with one number of streams", change(good, iperf2, "", scale(2.01)), []int{0}},
		{"iperf3 is as fast", change(good, iperf4, "", scale(2)), nil},
		{"the yardstick is faster at 16 MiB", change(good, yardsticks, "write 16MiB × 4, 2", scale(1.12)), []int{1}},
		{"the yardstick is faster by what is allowed", change(good, yardsticks, "16MiB", scale(1/0.9)), nil},
		{"the yardstick is faster with one request at a time", change(good, yardsticks, "4KiB × 1,", scale(9)), nil},
		{"a slow number of submitters does not count against bulk", change(good, tcp, "64KiB × 16, 2", scale(0.2)), nil},
		{"writes by one submitter", change(good, cxxPool, "write 64KiB × 16, 1", scale(13.4)), []int{2, 9, 11}},
		{"reads by one submitter", change(good, cxxPool, "read 1MiB × 8, 1", scale(14.4)), []int{2, 9, 11}},
		{"four submitters", change(good, tcp, "read 1MiB × 8, 4", scale(0.22)), []int{3}},
		{"4 KiB in batches, against C++", change(good, tcp, "write 4KiB × 64, 2", scale(0.81*0.9)), []int{4, 5}},
		{"4 KiB in batches, against the yardstick", change(good, tcp, "read 4KiB × 64, 4", scale(0.79)), []int{5}},
		{"one at a time", change(good, tcp, "write 4KiB × 1, 1", scale(0.05)), []int{6}},
		{"one at a time, two submitters", change(good, tcp, "write 4KiB × 1, 2", scale(0.05)), nil},
		{"processor time of one at a time", change(good, tcp, "read 4KiB × 1, 1", scaleCPU(5.1)), []int{7}},
		{"4 KiB writes to C++", change(good, tcpToCxx, "write 4KiB × 64, 1", scale(0.39)), []int{8}},
		{"4 KiB reads from C++, which need less", change(good, tcpToCxx, "read 4KiB × 64, 1", scale(0.33)), nil},
		{"4 KiB reads from C++", change(good, tcpToCxx, "read 4KiB × 64, 1", scale(0.31)), []int{8}},
		{"bulk to C++", change(good, tcpToCxx, "64KiB × 16, 1", scale(0.24)), []int{9}},
		{"four submitters to C++", change(good, tcpToCxx, "1MiB × 8, 4", scale(0.49)), []int{10}},
		{"from C++", change(good, cxxToTCP, "read 16MiB × 4, 2", scale(0.94)), []int{11}},
		{"from C++, no pool", change(good, cxxNoPoolToTCP, "write 4KiB × 1, 4", scale(0.94)), []int{12}},
		{"from C++, within what is allowed", change(good, cxxToTCP, "", scale(0.96)), nil},
		{"processor time against C++ only", change(good, cxxPool, "16MiB × 4, 4", scaleCPU(0.28)), []int{13}},
		{"processor time", change(good, tcp, "write 64KiB × 16, 1", scaleCPU(1.21)), []int{14}},
		{"processor time of small requests in batches", change(good, tcp, "4KiB × 64", scaleCPU(1.21)), nil},
		{"small beside bulk", change(good, tcp, "read 4KiB × 1, 1", func(r *row) { p := 39.0; r.LatencyP50 = &p }), []int{15}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := judged(tt.rows, missed); !slices.Equal(got, tt.want) {
				t.Errorf("missed: gates %d, want %d", got, tt.want)
			}
			if got := judged(tt.rows, unmeasured); got != nil {
				t.Errorf("not measured: gates %d, want none", got)
			}
		})
	}
}

func TestGatesWithoutFiguresDoNotHold(t *testing.T) {
	good := goodRows(5)
	without := func(pair string) []row {
		return slices.DeleteFunc(slices.Clone(good), func(r row) bool { return r.Pair == pair })
	}
	tests := []struct {
		name string
		rows []row
		want []int
		why  string
	}{
		{"no rows", nil, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, "no row tcp, write 64KiB × 16, 1 at once"},
		{"no iperf3 with four streams", without(iperf4), []int{0}, "no row iperf3-4, write 1MiB × 1, 4 at once"},
		{"no yardstick", without(yardsticks), []int{1, 5, 14}, "no row yardstick, write 64KiB × 16, 1 at once"},
		{"no C++ engine", without(cxxPool), []int{2, 3, 4, 6, 7, 8, 9, 10, 11, 13}, "no row cxx-pool, write 64KiB × 16, 1 at once"},
		{"no bulk beside small", without(besideBulk), []int{15}, "no row tcp-small-beside-bulk, read 4KiB × 1, 1 at once"},
		{"three rounds from C++", change(good, cxxToTCP, "", func(r *row) { r.Rounds = 3 }), []int{11}, "would be \"holds\", on 3 of 5 rounds"},
		{"two rounds of moonpath in one cell", change(good, tcp, "write 1MiB × 8, 4", func(r *row) { r.Rounds = 2 }), []int{0, 1, 3, 13, 14}, "would be \"holds\", on 2 of 3 rounds"},
		{"no latency", change(good, besideBulk, "", func(r *row) { r.LatencyP99 = nil }), []int{15}, "a figure is zero"},
		{"no processor time", change(good, yardsticks, "1MiB × 8, 1", func(r *row) { r.CPUSecondsPerGB = 0 }), []int{14}, "a figure is zero"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := judged(tt.rows, unmeasured); !slices.Equal(got, tt.want) {
				t.Errorf("not measured: gates %d, want %d", got, tt.want)
			}
			first := ""
			for _, o := range judge(tcpGates(), tt.rows) {
				for _, c := range o.Checks {
					first = cmp.Or(first, c.Why)
					if (c.Verdict == unmeasured) != (c.Why != "") {
						t.Errorf("%s, %s: %s, because %q", o.Name, c.Cell, c.Verdict, c.Why)
					}
				}
			}
			if first != tt.why {
				t.Errorf("the first reason is %q, want %q", first, tt.why)
			}
		})
	}
}

func TestAMissOutweighsWhatIsNotMeasured(t *testing.T) {
	first, last := "write 64KiB × 16, 4 at once", "read 1MiB × 8, 4 at once"
	for miss, gap := range map[string]string{first: last, last: first} {
		rows := change(goodRows(5), tcp, miss, scale(0.1))
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.Pair == cxxPool && r.cell.String() == gap })
		o := judge(tcpGates(), rows)[3]
		if o.Verdict != missed || o.count(unmeasured) != 1 || o.count(missed) != 1 || o.count(holds) != 2 {
			t.Errorf("%s: %+v", o.Verdict, o.Checks)
		}
		w, ok := o.worst()
		if !ok || w.Cell != miss || w.Ratio != 2 || w.Limit != "≥ 4.5 ×" {
			t.Errorf("worst check: %+v", w)
		}
	}
}

func TestTooFewRoundsSayWhatWouldBe(t *testing.T) {
	for _, o := range judge(tcpGates(), goodRows(1)) {
		for _, c := range o.Checks {
			if c.Verdict != unmeasured || !strings.Contains(c.Why, `would be "holds", on 1 of `) || c.Ratio == 0 {
				t.Fatalf("%s: %+v", o.Name, c)
			}
		}
	}
}
