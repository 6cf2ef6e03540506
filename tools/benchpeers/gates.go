package main

import (
	"fmt"
	"math"
)

// verdict is what a gate comes to.
type verdict string

const (
	holds      verdict = "holds"
	missed     verdict = "missed"
	unmeasured verdict = "not measured"
)

// limit is what a ratio is held against.
type limit struct {
	ratio  float64
	atMost bool
}

func atLeast(ratio float64) limit { return limit{ratio: ratio} }
func atMost(ratio float64) limit  { return limit{ratio: ratio, atMost: true} }

func (l limit) String() string {
	if l.atMost {
		return fmt.Sprintf("≤ %g ×", l.ratio)
	}
	return fmt.Sprintf("≥ %g ×", l.ratio)
}

// room says how far a ratio is on the good side of the limit: 1 is on it, less is beyond.
func (l limit) room(ratio float64) float64 {
	if l.atMost {
		return l.ratio / ratio
	}
	return ratio / l.ratio
}

// check is one ratio of a gate.
type check struct {
	Cell    string  `json:"cell"`
	Limit   string  `json:"limit"`
	Ratio   float64 `json:"ratio"`
	Verdict verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"` // of one that is not measured
	room    float64
}

// gate is a promise about ratios of rows. It holds if all its checks do.
type gate struct {
	name   string
	wants  string
	rounds int // fewer decide nothing
	checks func(gate, table) []check
}

const (
	gateRounds    = 3
	cxxGateRounds = 5 // for a threshold so close to one
)

// value is a figure of a row, or the reason why there is none.
type value struct {
	figure  float64
	rounds  int
	missing string
}

// table finds rows.
type table map[key]row

func newTable(rows []row) table {
	t := make(table, len(rows))
	for _, r := range rows {
		t[key{r.Pair, r.cell}] = r
	}
	return t
}

func (t table) value(pair string, c cell, of func(row) float64) value {
	r, ok := t[key{pair, c}]
	if !ok {
		return value{missing: fmt.Sprintf("no row %s, %v", pair, c)}
	}
	return value{figure: of(r), rounds: r.Rounds}
}

func rate(r row) float64     { return r.BytesPerSecond }
func requests(r row) float64 { return r.RequestsPerSecond }
func cpuPerGB(r row) float64 { return r.CPUSecondsPerGB }

func (t table) rate(pair string, c cell) value { return t.value(pair, c, rate) }

// best is the highest of values, all of which must be there.
func best(values ...value) value {
	out := value{rounds: math.MaxInt}
	for _, v := range values {
		if v.missing != "" {
			return v
		}
		out.figure = max(out.figure, v.figure)
		out.rounds = min(out.rounds, v.rounds)
	}
	return out
}

func (t table) bestRate(pair string, c cell) value {
	var all []value
	for _, n := range submitterSteps {
		c.Submitters = n
		all = append(all, t.rate(pair, c))
	}
	return best(all...)
}

func (t table) bestIperf() value {
	return best(
		t.rate(iperf1, cell{"write", iperfBlock, 1, 1}),
		t.rate(iperf2, cell{"write", iperfBlock, 1, 2}),
		t.rate(iperf4, cell{"write", iperfBlock, 1, 4}))
}

// compare holds the ratio of two values against a limit.
func (g gate) compare(where string, ours, theirs value, l limit) check {
	c := check{Cell: where, Limit: l.String(), Verdict: unmeasured}
	for _, v := range []value{ours, theirs} {
		if v.missing != "" {
			c.Why = v.missing
			return c
		}
	}
	if ours.figure <= 0 || theirs.figure <= 0 {
		c.Why = "a figure is zero"
		return c
	}
	c.Ratio = ours.figure / theirs.figure
	c.room = l.room(c.Ratio)
	c.Verdict = holds
	if c.room < 1 {
		c.Verdict = missed
	}
	if rounds := min(ours.rounds, theirs.rounds); rounds < g.rounds {
		c.Why = fmt.Sprintf("would be %q, on %d of %d rounds", c.Verdict, rounds, g.rounds)
		c.Verdict = unmeasured
	}
	return c
}

// outcome is a gate with its checks.
type outcome struct {
	Name    string  `json:"gate"`
	Wants   string  `json:"wants"`
	Verdict verdict `json:"verdict"`
	Checks  []check `json:"checks"`
}

func judge(gates []gate, rows []row) []outcome {
	t := newTable(rows)
	var out []outcome
	for _, g := range gates {
		o := outcome{Name: g.name, Wants: g.wants, Verdict: holds, Checks: g.checks(g, t)}
		for _, c := range o.Checks {
			if c.Verdict == missed || c.Verdict == unmeasured && o.Verdict == holds {
				o.Verdict = c.Verdict
			}
		}
		out = append(out, o)
	}
	return out
}

// worst is the check with the least room among those that have a figure.
func (o outcome) worst() (check, bool) {
	w, found := check{}, false
	for _, c := range o.Checks {
		if c.Ratio > 0 && (!found || c.room < w.room) {
			w, found = c, true
		}
	}
	return w, found
}

// count says how many checks came to a verdict.
func (o outcome) count(v verdict) int {
	n := 0
	for _, c := range o.Checks {
		if c.Verdict == v {
			n++
		}
	}
	return n
}
