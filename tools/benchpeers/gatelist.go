package main

import "fmt"

// shapesOf lists cells of one submitter, for writes and reads.
func shapesOf(blocks ...int) []cell {
	var out []cell
	for _, block := range blocks {
		for _, s := range shapes {
			if s.block != block || s.batch == 1 { // one request at a time has a gate of its own
				continue
			}
			for _, op := range ops {
				out = append(out, cell{op, s.block, s.batch, 1})
			}
		}
	}
	return out
}

func withSubmitters(cells []cell, steps ...int) []cell {
	var out []cell
	for _, c := range cells {
		for _, n := range steps {
			c.Submitters = n
			out = append(out, c)
		}
	}
	return out
}

// perCell compares two pairs cell by cell.
func perCell(ours, theirs string, of func(row) float64, cells []cell, l func(cell) limit) func(gate, table) []check {
	return func(g gate, t table) []check {
		var out []check
		for _, c := range cells {
			out = append(out, g.compare(c.String(), t.value(ours, c, of), t.value(theirs, c, of), l(c)))
		}
		return out
	}
}

func always(l limit) func(cell) limit { return func(cell) limit { return l } }

func byOp(write, read float64) func(cell) limit {
	return func(c cell) limit {
		if c.Op == "write" {
			return atLeast(write)
		}
		return atLeast(read)
	}
}

func bestPerCell(cells []cell, theirs func(table, cell) value, l limit) func(gate, table) []check {
	return func(g gate, t table) []check {
		var out []check
		for _, c := range cells {
			where := fmt.Sprintf("%s %s × %d", c.Op, sizeName(c.Block), c.Batch)
			out = append(out, g.compare(where, t.bestRate(tcp, c), theirs(t, c), l))
		}
		return out
	}
}

// tcpGates are what the TCP transport promises. "C++" is the published engine on both ends with its connection pool on,
// which is its default and its better mode, unless the gate says otherwise.
func tcpGates() []gate {
	middle := shapesOf(64*kib, mib)
	bulk := shapesOf(64*kib, mib, 16*mib)
	small := shapesOf(4 * kib)
	one := []cell{{"write", 4 * kib, 1, 1}, {"read", 4 * kib, 1, 1}}
	everything := matrix(func(int) bool { return true })
	four := withSubmitters(middle, 4)

	return []gate{
		{"bulk, both ends moonpath", "64 KiB and 1 MiB, best of 1, 2, 4 submitters: ≥ 1 × the best of iperf3 with 1, 2, 4 streams", gateRounds,
			bestPerCell(middle, func(t table, _ cell) value { return t.bestIperf() }, atLeast(1))},
		{"bulk, both ends moonpath", "64 KiB, 1 MiB, 16 MiB, best of 1, 2, 4 submitters: ≥ 0.9 × the best of the yardstick", gateRounds,
			bestPerCell(bulk, func(t table, c cell) value { return t.bestRate(yardsticks, c) }, atLeast(0.9))},
		{"one submitter, both ends moonpath", "64 KiB and 1 MiB: write ≥ 1.5 ×, read ≥ 1.4 × C++", gateRounds,
			perCell(tcp, cxxPool, rate, middle, byOp(1.5, 1.4))},
		{"four submitters, both ends moonpath", "64 KiB and 1 MiB: ≥ 4.5 × C++", gateRounds,
			perCell(tcp, cxxPool, rate, four, always(atLeast(4.5)))},
		{"4 KiB in batches of 64, both ends moonpath", "1, 2, 4 submitters: ≥ 15 × C++", gateRounds,
			perCell(tcp, cxxPool, rate, withSubmitters(small, submitterSteps...), always(atLeast(15)))},
		{"4 KiB in batches of 64, both ends moonpath", "1, 2, 4 submitters: ≥ 0.8 × the yardstick", gateRounds,
			perCell(tcp, yardsticks, rate, withSubmitters(small, submitterSteps...), always(atLeast(0.8)))},
		{"4 KiB one at a time, both ends moonpath", "one submitter: ≥ 1.2 × the requests per second of C++", gateRounds,
			perCell(tcp, cxxPool, requests, one, always(atLeast(1.2)))},
		{"4 KiB one at a time, both ends moonpath", "one submitter: ≤ 0.5 × the core-seconds per GB of C++", gateRounds,
			perCell(tcp, cxxPool, cpuPerGB, one, always(atMost(0.5)))},
		{"moonpath to a C++ target", "4 KiB in batches of 64, one submitter: write ≥ 2 ×, read ≥ 1.6 × C++ to C++", gateRounds,
			perCell(tcpToCxx, cxxPool, rate, small, byOp(2, 1.6))},
		{"moonpath to a C++ target", "64 KiB and 1 MiB, one submitter: ≥ 1.25 × C++ to C++", gateRounds,
			perCell(tcpToCxx, cxxPool, rate, middle, always(atLeast(1.25)))},
		{"moonpath to a C++ target", "64 KiB and 1 MiB, four submitters: ≥ 2.5 × C++ to C++", gateRounds,
			perCell(tcpToCxx, cxxPool, rate, four, always(atLeast(2.5)))},
		{"C++ to a moonpath target, pool on", "every cell, 5 rounds: ≥ 0.95 × C++ to C++", cxxGateRounds,
			perCell(cxxToTCP, cxxPool, rate, everything, always(atLeast(0.95)))},
		{"C++ to a moonpath target, pool off", "every cell, 5 rounds: ≥ 0.95 × C++ to C++, pool off", cxxGateRounds,
			perCell(cxxNoPoolToTCP, cxxNoPool, rate, everything, always(atLeast(0.95)))},
		{"processor time of both ends", "64 KiB and more, 1, 2, 4 submitters: ≤ 0.35 × the core-seconds per GB of C++", gateRounds,
			perCell(tcp, cxxPool, cpuPerGB, withSubmitters(bulk, submitterSteps...), always(atMost(0.35)))},
		{"processor time of both ends", "64 KiB and more, 1, 2, 4 submitters: ≤ 1.2 × the core-seconds per GB of the yardstick", gateRounds,
			perCell(tcp, yardsticks, cpuPerGB, withSubmitters(bulk, submitterSteps...), always(atMost(1.2)))},
		{"4 KiB read beside 16 MiB reads from the same peer", "p99 ≤ 10 × the p50 without them", gateRounds, smallBesideBulk},
	}
}

func smallBesideBulk(g gate, t table) []check {
	p99 := t.value(besideBulk, smallAlone, func(r row) float64 { return orZero(r.LatencyP99) })
	p50 := t.value(tcp, smallAlone, func(r row) float64 { return orZero(r.LatencyP50) })
	return []check{g.compare(smallAlone.String(), p99, p50, atMost(10))}
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
