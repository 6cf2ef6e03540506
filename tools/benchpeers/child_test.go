package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

func TestChildAndItsChildrenEndWithTheirTime(t *testing.T) {
	t.Chdir(t.TempDir())
	start := time.Now()
	_, err := runChild(t.Context(), 300*time.Millisecond, nil, "/bin/sh", "-c", "sleep 600 & echo $! >pid; wait")
	if err == nil || !strings.Contains(err.Error(), "sh did not end within 300ms") {
		t.Errorf("error %v, want one that names the program and its time", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	checkGone(t, "pid")
}

func TestChildLeavesOutputAndProcessorTime(t *testing.T) {
	script := `echo out; echo err >&2; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo "$GREETING"`
	done, err := runChild(t.Context(), time.Minute, []string{"GREETING=hello"}, "/bin/sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	if string(done.stdout) != "out\nhello\n" || string(done.stderr) != "err\n" || done.cpuSeconds <= 0 {
		t.Errorf("stdout %q, stderr %q, %g s", done.stdout, done.stderr, done.cpuSeconds)
	}
	_, err = runChild(t.Context(), time.Minute, nil, "/bin/sh", "-c", "echo why it failed >&2; exit 3")
	if err == nil || !strings.Contains(err.Error(), "exit status 3: why it failed") {
		t.Errorf("error %v, want the exit status and the last line", err)
	}
}

func readyAt(word string) func([]byte) bool {
	return func(line []byte) bool { return string(line) == word }
}

func TestTargetServesUntilItIsStopped(t *testing.T) {
	t.Chdir(t.TempDir())
	script := `echo $$ >pid; echo starting; echo ready >&2; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done >ran; exec sleep 600`
	served, err := startTarget(t.Context(), nil, readyAt("ready"), "/bin/sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	if err := served.alive(); err != nil {
		t.Error(err)
	}
	ctx, cancel := contextAfterFile(t, "ran")
	defer cancel()
	<-ctx.Done()
	if cpu, err := served.cpuSeconds(); err != nil || cpu <= 0 {
		t.Errorf("processor time %g, %v, of a target that has worked", cpu, err)
	}
	served.stop()
	checkGone(t, "pid")
	if err := served.alive(); err == nil {
		t.Error("a stopped target is said to serve")
	}
}

func TestTargetThatIgnoresItsEndIsKilled(t *testing.T) {
	t.Chdir(t.TempDir())
	served, err := startTarget(t.Context(), nil, readyAt("ready"), "/bin/sh", "-c",
		`trap '' TERM; echo $$ >pid; echo ready; while :; do sleep 1; done`)
	if err != nil {
		t.Fatal(err)
	}
	served.stop()
	checkGone(t, "pid")
}

func TestTargetThatDoesNotServeSaysWhy(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := startTarget(t.Context(), nil, readyAt("ready"), "/bin/sh", "-c", "echo address in use; exit 1")
	if err == nil || !strings.Contains(err.Error(), "sh ended before it was ready: address in use") {
		t.Errorf("error %v, want the last line of the target", err)
	}
	_, err = startTarget(t.Context(), nil, readyAt("ready"), "./absent")
	if err == nil || !strings.Contains(err.Error(), "start absent") {
		t.Errorf("error %v, want one that names the program", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := startTarget(ctx, nil, readyAt("ready"), "/bin/sh", "-c", "echo $$ >pid; exec sleep 600"); err == nil {
		t.Error("no error for a target that was never ready")
	}
	checkGone(t, "pid")
}

func TestMeasureNamesATargetThatHasEnded(t *testing.T) {
	served, err := startTarget(t.Context(), nil, readyAt("ready"), "/bin/sh", "-c", "echo ready; echo out of memory; exit 1")
	if err != nil {
		t.Fatal(err)
	}
	<-served.ended
	p := &pair{start: func(context.Context) (*target, error) { return served, nil }}
	if _, err := p.measure(t.Context(), cell{}, time.Second); err == nil || !strings.Contains(err.Error(), "has ended: out of memory") {
		t.Errorf("error %v, want one with the target's last line", err)
	}
}

func TestMeasureAddsTheTargetsProcessorTime(t *testing.T) {
	t.Chdir(t.TempDir())
	served, err := startTarget(t.Context(), nil, readyAt("ready"), "/bin/sh", "-c",
		`echo ready; while [ ! -e go ]; do sleep 0.01; done; i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; echo done >ran; exec sleep 600`)
	if err != nil {
		t.Fatal(err)
	}
	defer served.stop()
	p := &pair{
		start: func(context.Context) (*target, error) { return served, nil },
		initiate: func(context.Context, cell, time.Duration) (sample, error) {
			if err := os.WriteFile("go", nil, 0o644); err != nil {
				return sample{}, err
			}
			ctx, cancel := contextAfterFile(t, "ran")
			defer cancel()
			<-ctx.Done()
			return sample{bytes: 1, requests: 1, seconds: 1, cpuSeconds: 100}, nil
		},
	}
	s, err := p.measure(t.Context(), cell{}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if s.cpuSeconds <= 100 || s.cpuSeconds > 130 {
		t.Errorf("%g s of processor time, want 100 of the initiator and some of the target", s.cpuSeconds)
	}
}

func TestParseStat(t *testing.T) {
	good := "4711 (a (b) c) S 1 4711 4711 0 -1 4194560 1 2 3 4 250 50 6 7 20 0 9 0 100 0 0"
	if s, err := parseStat([]byte(good)); err != nil || s != 3 {
		t.Errorf("%g, %v, want 3 s", s, err)
	}
	for _, bad := range []string{"", "4711 (a", "4711 (a) S 1 2", strings.Replace(good, "250", "x", 1)} {
		if s, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: %g s and no error", bad, s)
		}
	}
}
