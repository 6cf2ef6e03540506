package config

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads a duration in Go's syntax ("500ms", "1m30s") or a bare whole number,
// which counts in unit. Negative ones and anything else give a [*BadDuration].
func ParseDuration(text string, unit time.Duration) (time.Duration, error) {
	if text != "" && strings.Trim(text, "0123456789") == "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n > math.MaxInt64/int64(unit) {
			return 0, &BadDuration{text, "it exceeds 292 years"}
		}
		return time.Duration(n) * unit, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, &BadDuration{text, "it is not a duration"}
	}
	if d < 0 {
		return 0, &BadDuration{text, "it is negative"}
	}
	return d, nil
}
