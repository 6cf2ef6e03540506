package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapMemory returns n bytes that are already backed by pages, so that no measurement pays for faults.
func mapMemory(n int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of memory: %w", n, err)
	}
	return mem, nil
}

func addressOf(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }

// cpuSeconds is the processor time this process has used so far.
func cpuSeconds() float64 {
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		panic(err) // only a wrong argument can fail
	}
	return float64(use.Utime.Nano()+use.Stime.Nano()) / 1e9
}
