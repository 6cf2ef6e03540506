package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// memcpyBytes is far more than caches hold, so that a block is cold when its turn comes.
const memcpyBytes = 256 * mib

// memcpy copies blocks with one thread, walking through two buffers: what the memory of this machine can do at most
// where a payload is copied once.
func memcpy(ctx context.Context, c cell, d time.Duration) (sample, error) {
	from, err := backed(memcpyBytes)
	if err != nil {
		return sample{}, err
	}
	defer unix.Munmap(from)
	to, err := backed(memcpyBytes)
	if err != nil {
		return sample{}, err
	}
	defer unix.Munmap(to)

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cpu, start := threadSeconds(), time.Now()
	s := sample{}
	for offset := 0; time.Since(start) < d && ctx.Err() == nil; offset = (offset + c.Block) % memcpyBytes {
		copy(to[offset:offset+c.Block], from[offset:offset+c.Block])
		s.bytes += int64(c.Block)
		s.requests++
	}
	s.seconds, s.cpuSeconds = time.Since(start).Seconds(), threadSeconds()-cpu
	return s, ctx.Err()
}

// backed returns memory in which each page is its own: pages that were never written share one page of zeros, and that
// is always warm.
func backed(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("map %s of memory: %w", sizeName(n), err)
	}
	return b, nil
}

func threadSeconds() float64 {
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &use); err != nil {
		panic(err) // only a wrong argument can fail
	}
	return float64(use.Utime.Nano()+use.Stime.Nano()) / 1e9
}
