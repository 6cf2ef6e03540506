package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

func mustOnly(t *testing.T, pattern string) *regexp.Regexp {
	t.Helper()
	r, err := regexp.Compile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// contextAfterFile ends when a file is there, or after half a minute.
func contextAfterFile(t *testing.T, file string) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	go func() {
		defer cancel()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			if _, err := os.Stat(file); err == nil {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return ctx, cancel
}

// checkGone fails if the process whose id is in a file still runs. One that was killed takes a moment to end.
func checkGone(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid := strings.TrimSpace(string(text))
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Second); runs(pid); <-tick.C {
		if time.Now().After(deadline) {
			t.Errorf("process %s outlived what started it", pid)
			return
		}
	}
}

// runs says whether a process is there and is not just waiting for its parent to take note of its end.
func runs(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
