package config

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated pages under docs/ anew")

func TestGeneratedPagesAreCurrent(t *testing.T) {
	for path, want := range map[string]string{
		"compat/env.md":         envPage(),
		"reference/settings.md": settingsPage(),
	} {
		path = filepath.Join("..", "docs", filepath.FromSlash(path))
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%s differs from the tables (%v): run go test ./config -run TestGeneratedPages -update", path, err)
		}
	}
}

const generated = "<!-- Generated from package config: go test ./config -run TestGeneratedPages -update -->\n\n"

func envPage() string {
	rows := slices.SortedFunc(slices.Values(Compat), func(a, b CompatRow) int { return cmp.Compare(a.Name, b.Name) })
	count := map[CompatState]int{}
	var table strings.Builder
	for _, r := range rows {
		count[r.State]++
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", r.Name, r.State, r.What, code(r.Key))
	}
	return generated + fmt.Sprintf(`# Mooncake's environment variables

What moonpath does with each of the %d variables whose name starts with `+"`%s`"+` that Mooncake 0.3.13.post1, its
sources or its later builds are known to read: %d honoured, %d honoured differently, %d ignored, %d belonging
to a part that this version does not have.

* A value that Mooncake would not accept leaves the default and gives a warning. Numbers follow the reference variable
  by variable: some accept digits only, some drop what follows the digits ([settings](../reference/settings.md)).
* A variable that is set but has no effect here gives one warning with the reason; its value is not shown.
* A name with the prefix that is in no row gives one warning with the most similar known name.
* Names without the prefix (such as `+"`USE_BAREX` or `NCCL_IB_GID_INDEX`"+`) are not read.

| name | state | what moonpath does, or why not | setting |
| --- | --- | --- | --- |
%s`, len(rows), envPrefix, count[Honoured], count[HonouredDifferently], count[Ignored], count[Later], table.String())
}

func settingsPage() string {
	return generated + `# Settings

Strongest first: an option in code, a flag, the environment, a file, the default. A bad value from code, a flag or a
file is an error; from the environment it gives a warning and the default, because Mooncake does that.
` + "`moonpath info`" + ` shows the value in force and where it came from.

* **size**: bytes, or a whole number with KiB, MiB, … (powers of 1024) or KB, MB, … (powers of 1000).
* **duration**: such as 500ms or 1m30s; a bare number counts in the unit given.
* **bool**: true, yes, on, 1 or false, no, off, 0. **presence** is the same, but in the environment any value, even an
  empty one or 0, means true.
* In the environment sizes and durations are plain numbers, in bytes and in the unit given. *lenient* ones drop what
  follows the digits, with a warning, as the reference does; others must be digits only.
* Of several variables the first that is set counts; the others are old names.

## Engine

` + settingsTable(Engine) + `
The two port bounds are valid as a pair: in order, each from 1024 to 65535 and not from 32768 to 60999. A bad pair from
the environment leaves both defaults.

## TCP

` + settingsTable(TCP)
}

func settingsTable(table []Setting) string {
	var page strings.Builder
	page.WriteString("| key | default | accepts | environment | meaning |\n| --- | --- | --- | --- | --- |\n")
	for _, s := range table {
		var names []string
		for _, name := range s.Env {
			names = append(names, code(name))
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", s.Key, s.Default, accepts(s), strings.Join(names, ", "), s.Help)
	}
	return page.String()
}

func accepts(s Setting) string {
	text := s.Kind.String()
	if s.Kind == Enum {
		text = strings.Join(s.Choices, ", ")
	}
	text += s.bounds()
	if s.Unit != 0 {
		text += ", unit " + s.Unit.String()
	}
	if s.Lenient {
		text += ", lenient"
	}
	if s.Floor != 0 {
		text += ", less than " + s.format(value{number: s.Floor}) + " in the environment counts as that"
	}
	return text
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
