package config

import (
	"slices"
	"strings"
)

// CompatRow says what moonpath does with one MC_* variable of the reference.
type CompatRow struct {
	Name  string
	State CompatState
	What  string // what moonpath does, or why it ignores the variable
	Key   string // the setting, for the honoured ones
}

// CompatState says how far moonpath follows the reference in a variable.
type CompatState uint8

// The states of a variable. Ignored and Later both mean that setting it has no effect here;
// [IgnoredEnv] warns about those.
const (
	Honoured            CompatState = iota
	HonouredDifferently             // What names the difference
	Ignored                         // moonpath has no use for it
	Later                           // it belongs to a part that this version does not have
)

// String returns the state as docs/compat/env.md prints it.
func (s CompatState) String() string {
	return [...]string{"honoured", "honoured differently", "ignored with a warning", "belongs to a later part"}[s]
}

// Compat lists every MC_* variable that the reference is known to read, by area.
var Compat = slices.Concat(compatEngine, compatTCP, compatLater, compatIgnored)

const envPrefix = "MC_"

// IgnoredEnv returns a warning for each variable of environ, name=value pairs, that the
// reference may obey and moonpath does not, with the reason. Values are not shown.
func IgnoredEnv(environ []string) (warnings []Warning) {
	for _, name := range mooncakeNames(environ) {
		i := slices.IndexFunc(Compat, func(r CompatRow) bool { return r.Name == name })
		if i < 0 {
			continue
		}
		switch r := Compat[i]; r.State {
		case Ignored:
			warnings = append(warnings, Warning{name, "ignored: " + r.What})
		case Later:
			warnings = append(warnings, Warning{name, "ignored for now: " + r.What})
		}
	}
	return warnings
}

// UnknownEnv returns a warning for each MC_* variable of environ, name=value pairs, that
// neither the table nor [Compat] knows, with the most similar known name.
func UnknownEnv(environ []string, table []Setting) (warnings []Warning) {
	var known []string
	for _, s := range table {
		known = append(known, s.Env...)
	}
	for _, r := range Compat {
		known = append(known, r.Name)
	}
	for _, name := range mooncakeNames(environ) {
		if slices.Contains(known, name) {
			continue
		}
		text := "unknown, ignored: docs/compat/env.md lists the names"
		if similar := nearest(name, known); similar != "" {
			text = "unknown, ignored: did you mean " + similar + "?"
		}
		warnings = append(warnings, Warning{name, text})
	}
	return warnings
}

// mooncakeNames returns the names with the reference's prefix, sorted, each once.
func mooncakeNames(environ []string) (names []string) {
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, envPrefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
