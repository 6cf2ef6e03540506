package config

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseDurationReadsUnitsAndBareNumbers(t *testing.T) {
	for _, c := range []struct {
		text string
		unit time.Duration
		want time.Duration
	}{
		{"0", time.Second, 0},
		{"5", time.Second, 5 * time.Second},
		{"250", time.Millisecond, 250 * time.Millisecond},
		{"500ms", time.Second, 500 * time.Millisecond},
		{"1m30s", time.Second, 90 * time.Second},
		{"1.5s", time.Second, 1500 * time.Millisecond},
		{"9223372036854775807", time.Nanosecond, math.MaxInt64},
	} {
		if got, err := ParseDuration(c.text, c.unit); err != nil || got != c.want {
			t.Errorf("ParseDuration(%q, %v) = %v, %v, want %v", c.text, c.unit, got, err, c.want)
		}
	}
}

func TestParseDurationRejects(t *testing.T) {
	for text, why := range map[string]string{
		"": "not a duration", "x": "not a duration", "5 s": "not a duration", "5sec": "not a duration",
		"-5": "not a duration", "-5s": "negative", "1e3": "not a duration",
		"9223372037": "exceeds", "99999999999999999999": "exceeds",
	} {
		d, err := ParseDuration(text, time.Second)
		var bad *BadDuration
		if !errors.As(err, &bad) || d != 0 {
			t.Errorf("ParseDuration(%q) = %v, %v, want 0 and a *BadDuration", text, d, err)
			continue
		}
		if bad.Text != text || !strings.Contains(bad.Error(), why) {
			t.Errorf("ParseDuration(%q): %q lacks %q", text, bad, why)
		}
	}
}
