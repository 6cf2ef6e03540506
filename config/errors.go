package config

import "fmt"

// BadValue reports a value from a file, a flag or code that the setting does not accept.
type BadValue struct {
	Key, Value string
	Want       string // what would be accepted, as a noun phrase
	Source     Source
}

// Error names the key, the value, its source and what is accepted.
func (e *BadValue) Error() string {
	return fmt.Sprintf("setting %s: %q from %s is not accepted: want %s", e.Key, e.Value, e.Source, e.Want)
}

// UnknownKey reports a key that no table declares.
type UnknownKey struct {
	Key     string
	Source  Source
	Nearest string // the most similar known key, empty if none is similar
}

// Error names the key, its source and the most similar known key.
func (e *UnknownKey) Error() string {
	if e.Nearest == "" {
		return fmt.Sprintf("setting %s from %s is unknown: `moonpath info` lists all settings", e.Key, e.Source)
	}
	return fmt.Sprintf("setting %s from %s is unknown: did you mean %s?", e.Key, e.Source, e.Nearest)
}

// BadSize reports a text that [ParseSize] does not accept.
type BadSize struct{ Text, Why string }

// Error quotes the text and says what to write instead.
func (e *BadSize) Error() string {
	return fmt.Sprintf("size %q: %s; write bytes, or a whole number with a unit such as 64KiB or 2GB", e.Text, e.Why)
}

// BadDuration reports a text that [ParseDuration] does not accept.
type BadDuration struct{ Text, Why string }

// Error quotes the text and says what to write instead.
func (e *BadDuration) Error() string {
	return fmt.Sprintf("duration %q: %s; write a number with a unit such as 500ms, 30s or 2m", e.Text, e.Why)
}

// Warning tells about an environment variable that did not do what its writer may expect.
// It never holds the value of a variable that is not a setting, which might be a secret.
type Warning struct {
	Env  string // the variable
	Text string // what was done instead, and why
}

// String returns one line for a log or a terminal.
func (w Warning) String() string { return w.Env + ": " + w.Text }
