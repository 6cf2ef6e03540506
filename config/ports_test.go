package config

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPortRangeFromTheEnvironmentFallsBackAsAPair covers wire spec, section 3.1.
func TestPortRangeFromTheEnvironmentFallsBackAsAPair(t *testing.T) {
	for _, c := range []struct {
		min, max string // empty: not set
		lo, hi   int
		warnings int
	}{
		{"", "", 15000, 17000, 0},
		{"16000", "", 16000, 17000, 0},
		{"", "16000", 15000, 16000, 0},
		{"1024", "65535", 1024, 65535, 0}, // may span the ephemeral ports
		{"20000", "20000", 20000, 20000, 0},
		{"32767", "61000", 32767, 61000, 0},
		{"1023", "16000", 15000, 17000, 2},
		{"16000", "65536", 15000, 17000, 2},
		{"32768", "61000", 15000, 17000, 2},
		{"16000", "60999", 15000, 17000, 2},
		{"16001", "16000", 15000, 17000, 2},
		{"17001", "", 15000, 17000, 1},
		{"x", "16000", 15000, 17000, 3}, // and one for the dropped text
	} {
		env := map[string]string{}
		if c.min != "" {
			env["MC_MIN_RPC_PORT"] = c.min
		}
		if c.max != "" {
			env["MC_MAX_RPC_PORT"] = c.max
		}
		v, warnings := mustResolve(t, Engine, env)
		if lo, hi := PortRange(v); lo != c.lo || hi != c.hi || len(warnings) != c.warnings {
			t.Errorf("%q to %q: %d to %d with warnings %q, want %d to %d with %d",
				c.min, c.max, lo, hi, warnings, c.lo, c.hi, c.warnings)
		}
	}
}

func TestBadPairFromTheEnvironmentDoesNotSpoilAFlag(t *testing.T) {
	env := map[string]string{"MC_MIN_RPC_PORT": "80"}
	v, warnings := mustResolve(t, Engine, env, Layer{Flag, map[string]string{"port.max": "16000"}})
	if lo, hi := PortRange(v); lo != 15000 || hi != 16000 {
		t.Errorf("PortRange = %d to %d", lo, hi)
	}
	want := []Warning{{"MC_MIN_RPC_PORT", "80 to 17000 is not " + wantPorts + ": both stay at their defaults"}}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
}

func TestBadPairFromElsewhereIsAnError(t *testing.T) {
	for _, c := range []struct {
		layers []Layer
		want   BadValue
	}{
		{[]Layer{{Flag, map[string]string{"port.min": "80"}}}, BadValue{"port.min", "80 to 17000", wantPorts, Flag}},
		{[]Layer{{Code, map[string]string{"port.max": "40000"}}}, BadValue{"port.max", "15000 to 40000", wantPorts, Code}},
		{
			[]Layer{{File, map[string]string{"port.min": "16500"}}, {Flag, map[string]string{"port.max": "16000"}}},
			BadValue{"port.max", "16500 to 16000", wantPorts, Flag},
		},
	} {
		_, _, err := Resolve(Engine, nil, c.layers...)
		var bad *BadValue
		if !errors.As(err, &bad) {
			t.Errorf("%v: %v, want a *BadValue", c.layers, err)
			continue
		}
		if diff := cmp.Diff(&c.want, bad); diff != "" {
			t.Error(diff)
		}
	}
}
