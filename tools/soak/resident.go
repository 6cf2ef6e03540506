package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// memorySamples are the resident memory of this process over the time of the run.
type memorySamples struct {
	last    atomic.Uint64
	samples []uint64
}

// start samples until the function that it returns is called, which may be called again.
func (m *memorySamples) start() (stop func()) {
	end := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if n, err := resident(); err == nil {
					m.last.Store(n)
					m.samples = append(m.samples, n)
				}
			case <-end:
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(end); running.Wait() })
}

// resident reads /proc/self/statm, whose second field counts pages.
func resident() (uint64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/self/statm: %q", text)
	}
	pages, err := strconv.ParseUint(string(fields[1]), 10, 64)
	return pages * uint64(os.Getpagesize()), err
}

// Memory is flat if the median of the last fifth of a run exceeds that of the second by a tenth and 48 MiB at most: one
// worker more or less has its memory mapped at a time.
const memorySlack = 48 << 20

func (m *memorySamples) judge() (early, late uint64, err error) {
	const parts = 5
	n := len(m.samples) / parts
	if n < 3 {
		return 0, 0, nil // too short a run to say
	}
	early, late = medianOf(m.samples[n:2*n]), medianOf(m.samples[len(m.samples)-n:])
	if late > early+early/10+memorySlack {
		err = fmt.Errorf("resident memory grew from %d to %d MiB: medians of the second and the last fifth of the run", early>>20, late>>20)
	}
	return early, late, err
}

func medianOf(samples []uint64) uint64 {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[len(sorted)/2]
}
