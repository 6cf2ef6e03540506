package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// environment says what a figure depends on, and nothing that names the machine.
func environment(now time.Time, rounds, cxxRounds int, d time.Duration) string {
	return fmt.Sprintf("%s, %d cores, Linux %s, %s/%s, %s; %d rounds, %d from and between C++ engines, %v for each measurement.",
		now.Format(time.DateOnly), runtime.NumCPU(), kernel(), runtime.GOOS, runtime.GOARCH, runtime.Version(),
		rounds, cxxRounds, d)
}

// kernel is the version without what distributions and owners add to it.
func kernel() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "of unknown version"
	}
	release := unix.ByteSliceToString(name.Release[:])
	parts := strings.SplitN(release, ".", 3)
	if len(parts) < 2 {
		return release
	}
	return parts[0] + "." + parts[1]
}
