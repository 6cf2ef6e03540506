package config

import "time"

// Setting declares one option: one row of a table.
type Setting struct {
	Key     string // dotted name, unique over all tables that are resolved together
	Default string // in the syntax of the kind; must parse and lie within the bounds
	Help    string // one sentence for `moonpath info` and the reference page

	// Env holds the variables that set this option: the current name first, then old names,
	// which are read only while all names before them are unset.
	Env []string

	Kind Kind

	// Min and Max bound Int, Size (bytes) and Duration (nanoseconds), both inclusive.
	// Max 0 means no upper bound.
	Min, Max int64

	// Floor raises a smaller number from the environment to itself instead of rejecting it.
	// Same unit as Min; 0 means none.
	Floor int64

	// Unit is the unit of a bare number for a Duration.
	Unit time.Duration

	// Lenient reads a number from the environment as C's atoi does: leading digits count,
	// the rest is dropped with a warning, and no digits at all mean 0.
	Lenient bool

	// Choices lists the values of an Enum.
	Choices []string

	// On and Off list the words, in any case, that an environment value of a Bool is compared
	// with. With only Off given everything else is on, with only On given everything else is
	// off; with neither, the words that flags accept are accepted and others rejected.
	On, Off []string
}

// Kind is the syntax and type of a setting.
type Kind uint8

// The kinds of settings.
const (
	Bool     Kind = iota // true, yes, on, 1 or false, no, off, 0
	Presence             // a Bool that any value in the environment, even an empty one, switches on
	Int                  // a whole number
	Size                 // bytes; units as in ParseSize except in the environment
	Duration             // units as in ParseDuration except in the environment
	Text                 // any text
	Enum                 // one of Setting.Choices, exactly
)

// String returns the kind's name as the reference page prints it.
func (k Kind) String() string {
	return [...]string{"bool", "presence", "int", "size", "duration", "text", "enum"}[k]
}

// Source says which layer a value came from; a greater source wins over a smaller one.
type Source uint8

// The sources in order of precedence, weakest first.
const (
	Default Source = iota
	File
	Environment
	Flag
	Code
)

// String returns the source in lower case, as messages and `moonpath info` print it.
func (s Source) String() string {
	return [...]string{"default", "file", "environment", "flag", "code"}[s]
}

// MarshalText makes JSON carry the name of the source.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Layer holds what one source says, as text by key. Source is File, Flag or Code: defaults
// come from the table and the environment from the function given to [Resolve].
type Layer struct {
	Source Source
	Values map[string]string
}
