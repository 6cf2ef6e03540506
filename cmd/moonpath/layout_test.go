package main

import (
	"errors"
	"testing"
)

// TestWindowsNeitherOverlapNorLeaveTheBuffer walks every thread through twice its share.
func TestWindowsNeitherOverlapNorLeaveTheBuffer(t *testing.T) {
	for _, l := range []layout{
		{block: 4, batch: 2, threads: 1, local: 8, remote: 8},
		{block: 4, batch: 2, threads: 3, local: 24, remote: 100},
		{block: 4, batch: 2, threads: 3, local: 50, remote: 100, cold: true},
		{block: 4, batch: 2, threads: 3, local: 24, remote: 24, cold: true},
		{block: 5, batch: 3, threads: 2, local: 31, remote: 1 << 10, cold: true},
	} {
		if err := l.check(); err != nil {
			t.Fatalf("%+v: %v", l, err)
		}
		local, remote := make([]int, l.local), make([]int, l.remote) // thread that uses a byte, counted from 1
		claim := func(side []int, thread int, at uint64) {
			for i := at; i < at+l.window(); i++ {
				if side[i] != 0 && side[i] != thread {
					t.Fatalf("%+v: threads %d and %d share byte %d", l, side[i], thread, i)
				}
				side[i] = thread
			}
		}
		for thread := range l.threads {
			c := l.cursor(thread)
			moved := false
			for range 2 * c.windows() {
				claim(local, thread+1, c.local())
				claim(remote, thread+1, c.remote())
				moved = c.advance() || moved
			}
			if want := c.windows() > 1; moved != want {
				t.Errorf("%+v: thread %d moved: %v, want %v", l, thread, moved, want)
			}
		}
	}
}

func TestColdWalksTheWholeBuffer(t *testing.T) {
	l := layout{block: 4, batch: 2, threads: 2, local: 16, remote: 64, cold: true}
	seen := map[uint64]bool{}
	for thread := range l.threads {
		c := l.cursor(thread)
		for range c.windows() {
			seen[c.remote()] = true
			c.advance()
		}
	}
	if len(seen) != 8 {
		t.Errorf("%d windows of 8 bytes were used, the buffer has 8: %v", len(seen), seen)
	}
}

func TestLayoutThatDoesNotFitIsRefused(t *testing.T) {
	for _, l := range []layout{
		{block: 9, batch: 1, threads: 1, remote: 8},
		{block: 1, batch: 3, threads: 3, remote: 8},
		{block: 1 << 63, batch: 65536, threads: 65536, remote: 1 << 40},
	} {
		var refused *toolError
		if err := l.check(); !errors.As(err, &refused) || refused.exit != exitUsage {
			t.Errorf("%+v: %v, want a usage error", l, err)
		}
	}
}
