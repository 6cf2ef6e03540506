package main

import (
	"fmt"
	"strconv"
	"time"
)

// rate writes bytes per second in the unit of all tables.
func rate(bytesPerSecond float64) string { return fmt.Sprintf("%.2f GB/s", bytesPerSecond/1e9) }

// perSecond is n over d, 0 for no time at all.
func perSecond(n uint64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// hex writes an address as all output for people does.
func hex(addr uint64) string { return "0x" + strconv.FormatUint(addr, 16) }

// brief rounds a duration to three digits.
func brief(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// plural writes a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
