package config

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sample has a setting of every kind.
var sample = []Setting{
	{Key: "b", Env: []string{"MC_B"}, Kind: Bool, Default: "true", Help: "A bool."},
	{Key: "p", Env: []string{"MC_P"}, Kind: Presence, Default: "false", Help: "A presence."},
	{Key: "i", Env: []string{"MC_I", "MC_OLD_I", "MC_OLDER_I"}, Kind: Int, Default: "4", Min: 1, Max: 16, Help: "An int."},
	{Key: "s", Env: []string{"MC_S"}, Kind: Size, Default: "1MiB", Min: 1 << 10, Help: "A size."},
	{Key: "d", Env: []string{"MC_D"}, Kind: Duration, Default: "30s", Min: int64(time.Millisecond), Unit: time.Second, Help: "A duration."},
	{Key: "t", Kind: Text, Default: "some text", Help: "A text."},
	{Key: "e", Env: []string{"MC_E"}, Kind: Enum, Default: "INFO", Choices: []string{"TRACE", "INFO"}, Help: "An enum."},
}

func environment(pairs map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		text, ok := pairs[name]
		return text, ok
	}
}

func mustResolve(t *testing.T, table []Setting, env map[string]string, layers ...Layer) (*Values, []Warning) {
	t.Helper()
	v, warnings, err := Resolve(table, environment(env), layers...)
	if err != nil {
		t.Fatal(err)
	}
	return v, warnings
}

func TestResolveTakesDefaults(t *testing.T) {
	v, warnings, err := Resolve(sample, nil)
	if err != nil || warnings != nil {
		t.Fatalf("Resolve: %v, %v", warnings, err)
	}
	if !v.Bool("b") || v.Bool("p") || v.Int("i") != 4 || v.Size("s") != 1<<20 || v.Duration("d") != 30*time.Second ||
		v.Text("t") != "some text" || v.Text("e") != "INFO" {
		t.Errorf("defaults are wrong: %+v", v.All())
	}
}

func TestResolvePrefersTheStrongerSource(t *testing.T) {
	env := map[string]string{"MC_I": "3"}
	file := Layer{File, map[string]string{"i": "2"}}
	flag := Layer{Flag, map[string]string{"i": "5"}}
	code := Layer{Code, map[string]string{"i": "6"}}
	for _, c := range []struct {
		name   string
		env    map[string]string
		layers []Layer
		want   int64
		source Source
	}{
		{"nothing", nil, nil, 4, Default},
		{"file", nil, []Layer{file}, 2, File},
		{"environment over file", env, []Layer{file}, 3, Environment},
		{"flag over environment", env, []Layer{file, flag}, 5, Flag},
		{"code over flag", env, []Layer{file, flag, code}, 6, Code},
		{"order of arguments does not count", env, []Layer{code, flag, file}, 6, Code},
		{"of equals the last", nil, []Layer{flag, {Flag, map[string]string{"i": "7"}}}, 7, Flag},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, _ := mustResolve(t, sample, c.env, c.layers...)
			i := v.All()[3]
			if v.Int("i") != c.want || i.Key != "i" || i.Source != c.source {
				t.Errorf("i is %d from %v, want %d from %v", v.Int("i"), i.Source, c.want, c.source)
			}
		})
	}
}

func TestResolveAcceptsFromFlagAndCode(t *testing.T) {
	v, _ := mustResolve(t, sample, map[string]string{"MC_P": ""}, Layer{Code, map[string]string{
		"b": "off", "p": "false", "i": "16", "s": "64KiB", "d": "500ms", "t": "", "e": "TRACE",
	}})
	want := []Resolved{
		{"b", "false", Code, "MC_B", "A bool."},
		{"d", "500ms", Code, "MC_D", "A duration."},
		{"e", "TRACE", Code, "MC_E", "An enum."},
		{"i", "16", Code, "MC_I", "An int."},
		{"p", "false", Code, "MC_P", "A presence."},
		{"s", "64KiB", Code, "MC_S", "A size."},
		{"t", "", Code, "", "A text."},
	}
	if diff := cmp.Diff(want, v.All()); diff != "" {
		t.Error(diff)
	}
}

func TestResolveRejectsBadValues(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"b", "perhaps", "true or false"},
		{"b", "", "true or false"},
		{"p", "present", "true or false"},
		{"i", "0", "a whole number (1 to 16)"},
		{"i", "17", "a whole number (1 to 16)"},
		{"i", "4x", "a whole number (1 to 16)"},
		{"i", "", "a whole number (1 to 16)"},
		{"i", "99999999999999999999", "a whole number (1 to 16)"},
		{"s", "-1", "a size such as 64KiB (at least 1KiB)"},
		{"s", "1023", "a size such as 64KiB (at least 1KiB)"},
		{"s", "8EiB", "a size such as 64KiB (at least 1KiB)"},
		{"d", "soon", "a duration such as 500ms (at least 1ms)"},
		{"d", "1us", "a duration such as 500ms (at least 1ms)"},
		{"e", "info", "one of TRACE, INFO"},
	} {
		for _, source := range []Source{File, Flag, Code} {
			v, _, err := Resolve(sample, nil, Layer{source, map[string]string{c.key: c.value}})
			var bad *BadValue
			if v != nil || !errors.As(err, &bad) {
				t.Errorf("%s=%q from %s: %v, want a *BadValue and no values", c.key, c.value, source, err)
				continue
			}
			if diff := cmp.Diff(&BadValue{c.key, c.value, c.want, source}, bad); diff != "" {
				t.Error(diff)
			}
		}
	}
}

func TestBadValueSaysWhatWhereAndWhatInstead(t *testing.T) {
	_, _, err := Resolve(TCP, nil, Layer{Flag, map[string]string{"tcp.lanes": "17"}})
	want := `setting tcp.lanes: "17" from flag is not accepted: want a whole number (1 to 16)`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestResolveNamesTheNearestKey(t *testing.T) {
	for key, want := range map[string]string{
		"tcp.lane":        "tcp.lanes",
		"TCP.Lanes":       "tcp.lanes",
		"tcp.max_queud":   "tcp.max_queued",
		"something.else":  "",
		"x":               "",
		"tcp.conect_time": "tcp.connect_timeout",
	} {
		_, _, err := Resolve(TCP, nil, Layer{File, map[string]string{key: "4"}})
		var unknown *UnknownKey
		if !errors.As(err, &unknown) {
			t.Errorf("%s: %v, want an *UnknownKey", key, err)
			continue
		}
		if diff := cmp.Diff(&UnknownKey{key, File, want}, unknown); diff != "" {
			t.Error(diff)
		}
		hint := want
		if want == "" {
			hint = "moonpath info"
		}
		if !strings.Contains(unknown.Error(), key) || !strings.Contains(unknown.Error(), hint) {
			t.Errorf("%q lacks %q or %q", unknown, key, hint)
		}
	}
}

func TestResolveReportsAllErrors(t *testing.T) {
	_, _, err := Resolve(sample, nil,
		Layer{Flag, map[string]string{"a": "unknown", "i": "x"}},
		Layer{Code, map[string]string{"e": "x"}})
	if got := strings.Count(err.Error(), "\n") + 1; got != 3 {
		t.Errorf("%d lines, want one for each of three errors:\n%v", got, err)
	}
}

func TestResolveRejectsLayersOfOtherSources(t *testing.T) {
	for _, source := range []Source{Default, Environment} {
		if _, _, err := Resolve(sample, nil, Layer{source, nil}); err == nil || !strings.Contains(err.Error(), source.String()) {
			t.Errorf("layer of source %s: %v, want an error that names it", source, err)
		}
	}
}

func TestProgrammingErrorsPanic(t *testing.T) {
	v, _ := mustResolve(t, sample, nil)
	for name, f := range map[string]func(){
		"unknown key": func() { v.Int("nope") },
		"wrong kind":  func() { v.Int("b") },
		"key twice":   func() { _, _, _ = Resolve([]Setting{sample[0], sample[0]}, nil) },
		"bad default": func() { _, _, _ = Resolve([]Setting{{Key: "k", Kind: Int, Default: "x"}}, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "config: ") {
					t.Errorf("panicked with %q, want a text that names the package", text)
				}
			}()
			f()
		})
	}
}

func TestResolvedIsReadableJSON(t *testing.T) {
	v, _ := mustResolve(t, sample[2:6], map[string]string{"MC_OLD_I": "6"},
		Layer{File, map[string]string{"s": "2MiB"}}, Layer{Flag, map[string]string{"d": "2s"}}, Layer{Code, map[string]string{"t": "x"}})
	got, err := json.Marshal(v.All())
	want := `[{"key":"d","value":"2s","source":"flag","env":"MC_D","help":"A duration."},` +
		`{"key":"i","value":"6","source":"environment","env":"MC_OLD_I","help":"An int."},` +
		`{"key":"s","value":"2MiB","source":"file","env":"MC_S","help":"A size."},` +
		`{"key":"t","value":"x","source":"code","help":"A text."}]`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}
