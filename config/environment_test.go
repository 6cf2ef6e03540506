package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEnvironmentIsReadAsTheReferenceReadsIt covers wire spec, section 8: which texts count,
// which leave the default, and which are read in part.
func TestEnvironmentIsReadAsTheReferenceReadsIt(t *testing.T) {
	pool := Setting{Key: "k", Kind: Bool, Default: "true", Off: []string{"0", "false", "no"}}
	robin := Setting{Key: "k", Kind: Bool, Default: "false", On: []string{"1", "true"}}
	either := Setting{Key: "k", Kind: Bool, Default: "false", On: []string{"1"}, Off: []string{"0"}}
	plain := Setting{Key: "k", Kind: Bool, Default: "true"}
	presence := Setting{Key: "k", Kind: Presence, Default: "false"}
	strict := Setting{Key: "k", Kind: Int, Default: "4", Min: 1, Max: 16}
	lenient := Setting{Key: "k", Kind: Int, Default: "12001", Min: 1, Max: 65535, Lenient: true}
	negative := Setting{Key: "k", Kind: Int, Default: "-1", Min: -1, Max: 255, Lenient: true}
	size := Setting{Key: "k", Kind: Size, Default: "1MiB", Min: 1 << 20, Max: 128 << 20}
	seconds := Setting{Key: "k", Kind: Duration, Default: "30s", Min: int64(time.Millisecond), Unit: time.Second, Lenient: true}
	floored := Setting{Key: "k", Kind: Duration, Default: "30s", Floor: int64(5 * time.Second), Unit: time.Second, Lenient: true}
	enum := Setting{Key: "k", Kind: Enum, Default: "2", Choices: []string{"1", "2"}}
	text := Setting{Key: "k", Kind: Text, Default: "a"}

	for _, c := range []struct {
		setting    Setting
		text, want string
		source     Source
		warning    string // part of it
	}{
		{pool, "0", "false", Environment, ""},
		{pool, "FALSE", "false", Environment, ""},
		{pool, "No", "false", Environment, ""},
		{pool, "off", "true", Environment, ""},
		{pool, "", "true", Environment, ""},
		{robin, "TRUE", "true", Environment, ""},
		{robin, "yes", "false", Environment, ""},
		{either, "1", "true", Environment, ""},
		{either, "0", "false", Environment, ""},
		{either, "yes", "false", Default, `"yes" is not true or false: k stays at false`},
		{plain, "off", "false", Environment, ""},
		{plain, "2", "true", Default, "stays at true"},
		{presence, "", "true", Environment, ""},
		{presence, "0", "true", Environment, ""},
		{strict, "16", "16", Environment, ""},
		{strict, "17", "4", Default, `"17" is not a plain number (1 to 16): k stays at 4`},
		{strict, "0", "4", Default, "stays at 4"},
		{strict, "4x", "4", Default, "stays at 4"},
		{strict, "2.5", "4", Default, "stays at 4"},
		{strict, "+5", "4", Default, "stays at 4"},
		{strict, "", "4", Default, "stays at 4"},
		{lenient, "4000", "4000", Environment, ""},
		{lenient, " 4000", "4000", Environment, ""},
		{lenient, "+4000", "4000", Environment, ""},
		{lenient, "4000x", "4000", Environment, `"4000x" is not a plain number: "x" was dropped, k is 4000`},
		{lenient, "x", "12001", Default, "stays at 12001"},
		{lenient, "", "12001", Default, "stays at 12001"},
		{lenient, "-5", "12001", Default, "stays at 12001"},
		{lenient, "+-5", "12001", Default, "stays at 12001"},
		{lenient, "65536", "12001", Default, "stays at 12001"},
		{lenient, "99999999999999999999", "12001", Default, "stays at 12001"},
		{negative, "-1", "-1", Environment, ""},
		{negative, "-2", "-1", Default, "stays at -1"},
		{negative, "abc", "0", Environment, `"abc" was dropped, k is 0`},
		{size, "2097152", "2MiB", Environment, ""},
		{size, "2MiB", "1MiB", Default, `"2MiB" is not a plain number (1MiB to 128MiB): k stays at 1MiB`},
		{size, "1048575", "1MiB", Default, "stays at 1MiB"},
		{size, "134217729", "1MiB", Default, "stays at 1MiB"},
		{seconds, "7", "7s", Environment, ""},
		{seconds, "0", "30s", Default, `"0" is not a plain number in units of 1s (at least 1ms): k stays at 30s`},
		{seconds, "500ms", "8m20s", Environment, `"ms" was dropped, k is 8m20s`},
		{seconds, "-1", "30s", Default, "stays at 30s"},
		{seconds, "-9223372036854775807", "30s", Default, "stays at 30s"},
		{seconds, "9223372036854775807", "2562047h47m16.854775807s", Environment, ""},
		{floored, "5", "5s", Environment, ""},
		{floored, "4", "5s", Environment, `"4" is less than the least value: k is 5s`},
		{floored, "x", "5s", Environment, "k is 5s"},
		{enum, "1", "1", Environment, ""},
		{enum, "01", "2", Default, `"01" is not one of 1, 2: k stays at 2`},
		{text, "", "", Environment, ""},
	} {
		c.setting.Env = []string{"MC_K"}
		v, warnings := mustResolve(t, []Setting{c.setting}, map[string]string{"MC_K": c.text})
		got := v.All()[0]
		if got.Value != c.want || got.Source != c.source {
			t.Errorf("%s %q: got %s from %s, want %s from %s", c.setting.Kind, c.text, got.Value, got.Source, c.want, c.source)
		}
		if (len(warnings) == 0) != (c.warning == "") || len(warnings) > 1 {
			t.Errorf("%s %q: warnings %q, want %q", c.setting.Kind, c.text, warnings, c.warning)
		}
		if len(warnings) == 1 && (warnings[0].Env != "MC_K" || !strings.Contains(warnings[0].String(), c.warning)) {
			t.Errorf("%s %q: warning %q lacks %q", c.setting.Kind, c.text, warnings[0], c.warning)
		}
	}
}

func TestOldNamesAreReadWhileNewerOnesAreUnset(t *testing.T) {
	oldName := func(name string) Warning { return Warning{name, "this is an old name: use MC_I"} }
	for _, c := range []struct {
		name     string
		env      map[string]string
		want     Resolved
		warnings []Warning
	}{
		{"new only", map[string]string{"MC_I": "5"}, Resolved{"i", "5", Environment, "MC_I", "An int."}, nil},
		{"old only", map[string]string{"MC_OLD_I": "6"}, Resolved{"i", "6", Environment, "MC_OLD_I", "An int."}, []Warning{oldName("MC_OLD_I")}},
		{"oldest only", map[string]string{"MC_OLDER_I": "7"}, Resolved{"i", "7", Environment, "MC_OLDER_I", "An int."}, []Warning{oldName("MC_OLDER_I")}},
		{"both", map[string]string{"MC_I": "5", "MC_OLD_I": "6"}, Resolved{"i", "5", Environment, "MC_I", "An int."}, nil},
		{
			"a bad new one does not bring the old one back", map[string]string{"MC_I": "x", "MC_OLD_I": "6"},
			Resolved{"i", "4", Default, "MC_I", "An int."}, []Warning{{"MC_I", `"x" is not a plain number (1 to 16): i stays at 4`}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, warnings := mustResolve(t, sample, c.env)
			if diff := cmp.Diff(c.want, v.All()[3]); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.warnings, warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLookupEnvReadsTheProcess(t *testing.T) {
	t.Setenv("MOONPATH_CONFIG_TEST", "a=b")
	if text, ok := LookupEnv("MOONPATH_CONFIG_TEST"); text != "a=b" || !ok {
		t.Errorf("LookupEnv = %q, %t", text, ok)
	}
	if !strings.Contains(strings.Join(Environ(), "\n"), "MOONPATH_CONFIG_TEST=a=b") {
		t.Error("Environ lacks the variable")
	}
}

// FuzzEnvironment gives one text to every setting: whatever it is, the values stay within
// their bounds and are written as a flag would accept them.
func FuzzEnvironment(f *testing.F) {
	for _, text := range []string{"", "0", "1", "-1", "+5", "4x", "99999999999999999999", "5s", "64KiB", "TRACE", "17000", "yes"} {
		f.Add(text)
	}
	table := slices.Concat(Engine, TCP)
	f.Fuzz(func(t *testing.T, text string) {
		v, _, err := Resolve(table, func(string) (string, bool) { return text, true })
		if err != nil {
			t.Fatalf("%q in the environment is an error: %v", text, err)
		}
		again := Layer{Flag, map[string]string{}}
		for _, r := range v.All() {
			again.Values[r.Key] = r.Value
		}
		if _, _, err := Resolve(table, nil, again); err != nil {
			t.Fatalf("%q in the environment gives values that a flag does not accept: %v", text, err)
		}
	})
}
