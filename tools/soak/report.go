package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// verdict is the last line of a run.
func verdict(name string, violated int64, seconds float64, seed uint64) string {
	if violated == 0 {
		return fmt.Sprintf("%s: all was as it should be for %.0f s, seed %d", name, seconds, seed)
	}
	return fmt.Sprintf("%s: %d violations within %.0f s, seed %d", name, violated, seconds, seed)
}

func (r result) print(out io.Writer) {
	rows := [][2]string{
		{"targets", strings.Join(r.Targets, ", ")},
		{"kills, freezes", fmt.Sprintf("%d, %d", r.Kills, r.Freezes)},
		{"batches", fmt.Sprint(r.Batches)},
		{"tasks", fmt.Sprint(r.Tasks.ended())},
	}
	rows = append(rows, r.Tasks.rows()...)
	rows = append(rows, [][2]string{
		{"longest batch", fmt.Sprintf("%.1f s", r.Longest)},
		{"compared with the model", fmt.Sprintf("%.1f GB", float64(r.Compared)/1e9)},
		{"engines replaced", fmt.Sprint(r.Engines)},
		{"segments closed", fmt.Sprint(r.Segments)},
		{"registrations", fmt.Sprint(r.Registrations)},
		{"resident memory", fmt.Sprintf("%d MiB early, %d MiB late", r.MemoryEarly>>20, r.MemoryLate>>20)},
	}...)
	printRows(out, rows, r.Violations)
}

func (r poisonResult) print(out io.Writer) {
	rows := append([][2]string{{"batches", fmt.Sprintf("%d of %d", r.Batches, r.Wanted)}, {"tasks", fmt.Sprint(r.Tasks.ended())}}, r.Tasks.rows()...)
	printRows(out, rows, r.Violations)
}

func (c counts) rows() [][2]string {
	return [][2]string{
		{"completed", fmt.Sprintf("%d, %.1f GB", c.Completed, float64(c.Bytes)/1e9)},
		{"failed", fmt.Sprint(c.Failed)},
		{"canceled", fmt.Sprint(c.Canceled)},
		{"timed out", fmt.Sprint(c.Timeout)},
		{"with remote state unknown", fmt.Sprint(c.Unknown)},
	}
}

func printRows(out io.Writer, rows [][2]string, violations []string) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\n", r[0], r[1])
	}
	table.Flush()
	for _, v := range violations {
		fmt.Fprintln(out, "violation:", v)
	}
}
