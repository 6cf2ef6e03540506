package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

type unit struct {
	name  string
	bytes uint64
}

// binaryUnits go from large to small, as FormatSize tries them.
var binaryUnits = []unit{
	{"EiB", 1 << 60}, {"PiB", 1 << 50}, {"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
}

var decimalUnits = []unit{
	{"EB", 1e18}, {"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1},
}

// ParseSize reads a number of bytes: plain ("4096"), with a binary unit ("64KiB", powers of
// 1024) or a decimal one ("2GB", powers of 1000), in any case, with or without one space.
// The result never exceeds [math.MaxInt64], so that it converts to int. Signs, fractions,
// single letters (is 1K 1000 or 1024?) and anything else give a [*BadSize].
func ParseSize(text string) (uint64, error) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	if digits == 0 {
		return 0, &BadSize{text, "it does not start with a digit"}
	}
	if strings.HasSuffix(text, " ") {
		return 0, &BadSize{text, "it ends in a space"}
	}
	unit, err := sizeUnit(text, strings.TrimPrefix(text[digits:], " "))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text[:digits], 10, 63)
	if err != nil || n > math.MaxInt64/unit {
		return 0, &BadSize{text, "it exceeds 8EiB-1"}
	}
	return n * unit, nil
}

func sizeUnit(text, name string) (uint64, error) {
	if name == "" {
		return 1, nil
	}
	for _, u := range slices.Concat(binaryUnits, decimalUnits) {
		if strings.EqualFold(name, u.name) {
			return u.bytes, nil
		}
	}
	if len(name) == 1 && strings.ContainsAny(name, "kmgtpeKMGTPE") {
		letter := strings.ToUpper(name)
		return 0, &BadSize{text, "the unit " + name + " could mean " + letter + "iB or " + letter + "B"}
	}
	return 0, &BadSize{text, strconv.Quote(name) + " is not a unit"}
}

// FormatSize writes n exactly, in the largest binary unit that divides it; ParseSize reads
// the result back for every n up to [math.MaxInt64].
func FormatSize(n uint64) string {
	for _, u := range binaryUnits {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatUint(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatUint(n, 10) + "B"
}
