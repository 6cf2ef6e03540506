package config

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestParseSizeReadsBytesAndUnits(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "1": 1, "4096": 4096, "007": 7, "12B": 12, "12b": 12,
		"64KiB": 64 << 10, "64kib": 64 << 10, "64 KiB": 64 << 10,
		"1KB": 1000, "1kB": 1000, "3MB": 3e6, "3MiB": 3 << 20, "2GB": 2e9, "2GiB": 2 << 30,
		"1TB": 1e12, "1TiB": 1 << 40, "1PB": 1e15, "1PiB": 1 << 50, "1EB": 1e18, "7EiB": 7 << 60,
		"9223372036854775807": math.MaxInt64,
	} {
		got, err := ParseSize(text)
		if err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestParseSizeRejects(t *testing.T) {
	for text, why := range map[string]string{
		"": "start with a digit", "KiB": "start with a digit", "-1": "start with a digit", "+1": "start with a digit",
		" 1": "start with a digit", "0x10": "not a unit", "1.5GiB": "not a unit", "1e3": "not a unit", "1 ": "ends in a space",
		"1  KiB": "not a unit", "1KiBB": "not a unit", "1Ki": "not a unit", "1_000": "not a unit",
		"64K": "KiB or KB", "1g": "GiB or GB",
		"9223372036854775808": "exceeds", "8EiB": "exceeds", "10EB": "exceeds", "99999999999999999999": "exceeds",
		"18446744073709551616KiB": "exceeds",
	} {
		n, err := ParseSize(text)
		var bad *BadSize
		if !errors.As(err, &bad) || n != 0 {
			t.Errorf("ParseSize(%q) = %d, %v, want 0 and a *BadSize", text, n, err)
			continue
		}
		if bad.Text != text || !strings.Contains(bad.Error(), why) {
			t.Errorf("ParseSize(%q): %q lacks %q", text, bad, why)
		}
	}
}

func TestFormatSizeIsExact(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0B", 1: "1B", 1023: "1023B", 1024: "1KiB", 1500: "1500B", 1536: "1536B", 65536: "64KiB",
		1 << 20: "1MiB", 3 << 30: "3GiB", 5 << 40: "5TiB", 1 << 50: "1PiB", 1 << 60: "1EiB", 1025 << 10: "1025KiB",
	} {
		if got := FormatSize(n); got != want {
			t.Errorf("FormatSize(%d) = %q, want %q", n, got, want)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, text := range []string{"0", "64KiB", "2GB", "8EiB", "9223372036854775807", "64K", "-1", "1.5GiB", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseSize(text)
		if err != nil {
			var bad *BadSize
			if !errors.As(err, &bad) {
				t.Fatalf("ParseSize(%q): %T is not a *BadSize", text, err)
			}
			return
		}
		if n > math.MaxInt64 {
			t.Fatalf("ParseSize(%q) = %d does not fit an int", text, n)
		}
		if again, err := ParseSize(FormatSize(n)); err != nil || again != n {
			t.Fatalf("ParseSize(%q) = %d, which formats as %q and reads back as %d, %v", text, n, FormatSize(n), again, err)
		}
	})
}
