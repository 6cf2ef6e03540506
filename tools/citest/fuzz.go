package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// target is one fuzz function.
type target struct{ pkg, name string }

func (t target) String() string { return t.pkg + "." + t.name }

// fuzz runs every fuzz target of pkgs in turn, each for the given time.
func (r *runner) fuzz(ctx context.Context, pkgs []string, each, budget time.Duration) (counts, []skip) {
	targets, err := r.fuzzTargets(ctx, pkgs)
	if err != nil {
		fmt.Fprintln(r.out, err)
		return counts{failed: 1}, nil
	}
	if len(targets) == 0 {
		fmt.Fprintln(r.out, "There is no fuzz target: a run like that proves nothing, so it counts as a failure.")
		return counts{failed: 1}, nil
	}
	fmt.Fprintf(r.out, "%d fuzz targets, %v each; the fuzzer picks its inputs anew each time, those that fail are kept under testdata/fuzz\n",
		len(targets), each)
	var sum counts
	var skips []skip
	started := time.Now()
	for i, t := range targets {
		if budget > 0 && time.Since(started) > budget {
			sum.skipped++
			skips = append(skips, skip{what: t.String(), why: fmt.Sprintf("the time for all fuzz targets, %v, was used up", budget)})
			continue
		}
		ok, note := r.fuzzOne(ctx, t, each)
		verdict := "ok  "
		if ok {
			sum.passed++
		} else {
			sum.failed++
			verdict = "FAIL"
		}
		fmt.Fprintf(r.out, "[%*d/%d] %s %s: %s\n", len(fmt.Sprint(len(targets))), i+1, len(targets), verdict, short(t.String(), r.module), note)
	}
	return sum, skips
}

// fuzzTargets asks each test binary for its fuzz functions.
func (r *runner) fuzzTargets(ctx context.Context, pkgs []string) ([]target, error) {
	out, err := r.goCommand(ctx, append([]string{"test", "-list", "^Fuzz"}, pkgs...)...)
	if err != nil {
		return nil, fmt.Errorf("looking for fuzz targets: %w\n%s", err, out)
	}
	return parseTargets(string(out)), nil
}

// parseTargets reads the output of go test -list: names, then a line that names their package.
func parseTargets(s string) []target {
	var all []target
	var names []string
	for _, line := range strings.Split(s, "\n") {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 1 && strings.HasPrefix(fields[0], "Fuzz"):
			names = append(names, fields[0])
		case len(fields) >= 2 && fields[0] == "ok":
			for _, n := range names {
				all = append(all, target{pkg: fields[1], name: n})
			}
			names = nil
		}
	}
	return all
}

func (r *runner) fuzzOne(ctx context.Context, t target, each time.Duration) (ok bool, note string) {
	// A failing input is made small within the time that is given to each target, not within the minute of the default.
	out, err := r.goCommand(ctx, "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", each.String(),
		"-fuzzminimizetime", each.String(), t.pkg)
	switch {
	case err == nil:
		return true, lastProgress(out)
	case onlyDeadline(out):
		return true, lastProgress(out) + " (its time ran out while an input was under way: golang/go#75804)"
	}
	return false, fmt.Sprintf("%v\n%s", err, out)
}

// onlyDeadline recognises a fault of the go command before 1.27: the end of -fuzztime is now and then reported as a
// failure. Anything else that a target says, a failing input above all, is a failure.
func onlyDeadline(out []byte) bool {
	var said []string
	for _, line := range strings.Split(string(out), "\n") {
		if !strings.HasPrefix(line, "fuzz: ") && len(meaningful([]string{line})) > 0 {
			said = append(said, strings.TrimSpace(line))
		}
	}
	return len(said) == 1 && said[0] == context.DeadlineExceeded.Error()
}

// lastProgress is what the fuzzer said last about its work.
func lastProgress(out []byte) string {
	note := "no progress line"
	for _, line := range bytes.Split(out, []byte("\n")) {
		if rest, ok := bytes.CutPrefix(line, []byte("fuzz: elapsed: ")); ok {
			note = string(rest)
		}
	}
	return note
}

func (r *runner) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = r.dir, r.env
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		err = errors.Join(err, ctx.Err())
	}
	return out, err
}
