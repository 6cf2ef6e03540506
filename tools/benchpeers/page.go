package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// page is the Markdown that a run comes to.
type page struct {
	environment string
	rows        []row
	outcomes    []outcome
	skipped     []string
}

const preface = `# TCP against its peers

Written by ` + "`make bench-peers`" + `; do not edit. Everything ran over loopback on one machine that does other work, too, so
ratios count and absolute figures do not. A pair is an initiator and a target:

| pair | is |
| --- | --- |
| tcp | moonpath on both ends |
| tcp-to-cxx | moonpath to a target of the published C++ engine |
| cxx-to-tcp, cxx-nopool-to-tcp | the C++ engine to a moonpath target, its connection pool on and off |
| cxx-pool, cxx-nopool | the C++ engine on both ends, its connection pool on and off |
| yardstick | tools/yardstick on both ends: the least Go that moves the same exchanges |
| iperf3-1, -2, -4 | iperf3 with that many streams, 1 MiB a call, one hot buffer |
| memcpy-cold | one thread that copies blocks from one buffer of 256 MiB to another |
| tcp-small-beside-bulk | as tcp, while the same engine reads 16 MiB blocks from the same peer in batches of 4 |

A submitter repeats one batch over one window of block × batch bytes. Figures are medians over rounds, with the least and
the most; k/s is thousands of requests per second. Processor time is that of both processes, from the start of the
initiator to its end, per 10^9 bytes measured. The C++ tool
never touches the memory that it writes from, which therefore is one page of zeros that stays in the cache: its writes look
better than they are.
`

func (p page) String() string {
	var b strings.Builder
	b.WriteString(preface)
	fmt.Fprintf(&b, "\n%s\n\n## Rates\n\n%s", p.environment, p.rates())
	fmt.Fprintf(&b, "\n## Gates\n\n%s%s", p.gates(), p.missed())
	b.WriteString(p.unmeasured())
	b.WriteString(list("Skipped", p.skipped))
	return b.String()
}

// rates is one table with a line for each cell and a column for each pair that goes through the cells, and below it the
// pairs that do not.
func (p page) rates() string {
	var names []string
	var cells []cell
	for _, r := range p.rows {
		if slices.Contains([]string{besideBulk, iperf1, iperf2, iperf4, memcpyCold}, r.Pair) {
			continue
		}
		if !slices.Contains(names, r.Pair) {
			names = append(names, r.Pair)
		}
		if !slices.Contains(cells, r.cell) {
			cells = append(cells, r.cell)
		}
	}
	t := newTable(p.rows)
	lines := [][]string{append([]string{"cell", "unit"}, names...)}
	for _, c := range cells {
		line := []string{c.String(), unit(c)}
		for _, name := range names {
			line = append(line, entry(t, name, c))
		}
		lines = append(lines, line)
	}
	return "median (least–most), core-seconds per GB\n\n" + markdown(lines) + "\n" + p.others(t, names)
}

// others is what does not go through the cells: it has its own.
func (p page) others(t table, names []string) string {
	lines := [][]string{{"pair", "cell", "unit", "rate", "p99"}}
	for _, r := range p.rows {
		if slices.Contains(names, r.Pair) {
			continue
		}
		p99 := "–"
		if r.LatencyP99 != nil {
			p99 = short(*r.LatencyP99) + " µs"
		}
		lines = append(lines, []string{r.Pair, r.cell.String(), unit(r.cell), entry(t, r.Pair, r.cell), p99})
	}
	if len(lines) == 1 {
		return ""
	}
	return markdown(lines)
}

// unit is what rates of a cell are shown in: small requests are counted.
func unit(c cell) string {
	if c.Block < 64*kib && c.Op != "copy" {
		return "k/s"
	}
	return "GB/s"
}

func entry(t table, pair string, c cell) string {
	r, ok := t[key{pair, c}]
	if !ok {
		return "–"
	}
	median, least, most := r.BytesPerSecond/1e9, r.BytesPerSecondMin/1e9, r.BytesPerSecondMax/1e9
	if unit(c) == "k/s" {
		median, least, most = r.RequestsPerSecond/1e3, r.RequestsPerSecondMin/1e3, r.RequestsPerSecondMax/1e3
	}
	return fmt.Sprintf("%s (%s–%s), %s", short(median), short(least), short(most), short(r.CPUSecondsPerGB))
}

// short shows three digits, or all that are before the point.
func short(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

func (p page) gates() string {
	lines := [][]string{{"gate", "wants", "closest or worst", "at", "held", "verdict"}}
	for _, o := range p.outcomes {
		line := []string{o.Name, o.Wants, "–", "–", fmt.Sprintf("%d of %d", o.count(holds), len(o.Checks)), string(o.Verdict)}
		if w, ok := o.worst(); ok {
			line[2], line[3] = short(w.Ratio)+" ×", w.Cell
		}
		lines = append(lines, line)
	}
	return markdown(lines)
}

// missed lists every check that a gate fails by.
func (p page) missed() string {
	var out []string
	for _, o := range p.outcomes {
		for _, c := range o.Checks {
			if c.Verdict == missed {
				out = append(out, fmt.Sprintf("%s, %s: %s ×, wants %s", o.Name, c.Cell, short(c.Ratio), c.Limit))
			}
		}
	}
	return list("Missed", out)
}

// unmeasured says for each gate how much of it was not measured, with the first reason: they tend to be the same.
func (p page) unmeasured() string {
	var out []string
	for _, o := range p.outcomes {
		for _, c := range o.Checks {
			if c.Verdict == unmeasured {
				out = append(out, fmt.Sprintf("%s, %s: %d of %d; %s: %s",
					o.Name, o.Wants, o.count(unmeasured), len(o.Checks), c.Cell, c.Why))
				break
			}
		}
	}
	return list("Not measured", out)
}

func list(title string, items []string) string {
	if len(items) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s:\n\n", title)
	for _, item := range items {
		fmt.Fprintf(&b, "* %s\n", item)
	}
	return b.String()
}

// markdown is a table whose columns line up, so that it reads well on a terminal, too.
func markdown(lines [][]string) string {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, text := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	var b strings.Builder
	put := func(line []string) {
		for i, text := range line {
			b.WriteString("| " + text + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)) + " ")
		}
		b.WriteString("|\n")
	}
	put(lines[0])
	rule := make([]string, len(widths))
	for i, w := range widths {
		rule[i] = strings.Repeat("-", w)
	}
	put(rule)
	for _, line := range lines[1:] {
		put(line)
	}
	return b.String()
}
