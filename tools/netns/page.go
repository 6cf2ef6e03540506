package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const preface = `# TCP over a network

Written by ` + "`make netns`" + `; do not edit. Two network namespaces of one machine stand for two hosts (package internal/netlab). Packets
of up to 9000 bytes go through TUN devices and a line in user space, which has the rate of the first column, holds back at most 25 ms of
it and drops the rest, and delays each packet by the delay of the first column in each direction, so that a round trip takes
twice as long. Kernels without netem can do this, too. The machine does other work and carries the packets itself, so ratios count and absolute
figures do not.

Both programs use the same number of connections (` + "`tcp.lanes`" + `, ` + "`iperf3 --parallel`" + `), in turns, and leave buffers and windows to the
kernel. *large buffers* means that both hosts let a socket have 64 MiB (` + "`tcp_rmem`, `tcp_wmem`" + `) instead of what their kernel came with.
moonpath moves batches of 8 × 1 MiB; each submitter waits for its batch before it submits the next. Rates are medians in MB/s (least–most). The
gate is a ratio of 0.9 at least; with one submitter there is none, because the line is idle for a round trip after each batch.
`

const gate = 0.9

// page is the Markdown that a run comes to.
type page struct {
	environment string
	rows        []row
}

func (p page) String() string {
	return preface + "\n" + p.environment + "\n\n" + p.table()
}

func (p page) table() string {
	lines := [][]string{{"line", "op", "streams", "submitters", "moonpath", "iperf3", "ratio", "congestion control", "verdict"}}
	for _, r := range p.rows {
		text := []string{r.line.name, r.op, fmt.Sprint(r.streams), fmt.Sprint(r.submitters)}
		if r.skipped != nil {
			text = append(text, "–", "–", "–", "–", "not measured: "+r.skipped.Error())
		} else {
			text = append(text, spread(r.moonpath), spread(r.iperf), fmt.Sprintf("%.2f", r.ratio()), r.congestion, r.verdict())
		}
		lines = append(lines, text)
	}
	return markdown(lines)
}

// verdicts counts the cells that have a gate.
func (p page) verdicts() (held, missed int) {
	for _, r := range p.rows {
		switch r.verdict() {
		case "holds":
			held++
		case "missed":
			missed++
		}
	}
	return held, missed
}

func (r row) ratio() float64 { return median(r.moonpath) / median(r.iperf) }

func (r row) verdict() string {
	switch {
	case !r.gated:
		return "–"
	case r.skipped == nil && r.ratio() >= gate:
		return "holds"
	default:
		return "missed"
	}
}

func (r row) summary() string {
	if r.skipped != nil {
		return r.skipped.Error()
	}
	return fmt.Sprintf("%s MB/s, iperf3 %s MB/s, %.2f, %s", spread(r.moonpath), spread(r.iperf), r.ratio(), r.congestion)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func spread(values []float64) string {
	return fmt.Sprintf("%.0f (%.0f–%.0f)", median(values)/1e6, slices.Min(values)/1e6, slices.Max(values)/1e6)
}

// markdown is a table whose columns line up.
func markdown(lines [][]string) string {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, text := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	rule := make([]string, len(widths))
	for i, w := range widths {
		rule[i] = strings.Repeat("-", w)
	}
	var b strings.Builder
	for _, line := range slices.Insert(lines, 1, rule) {
		for i, text := range line {
			b.WriteString("| " + text + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)) + " ")
		}
		b.WriteString("|\n")
	}
	return b.String()
}
