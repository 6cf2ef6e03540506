package config

import (
	"maps"
	"slices"
	"time"
)

// Values are the resolved settings of one table. They never change; any goroutine may read.
// The getters panic for a key that the table does not declare or declares with another kind:
// that is a programming error, never a matter of input.
type Values struct {
	rows  map[string]*row
	order []string // keys as in the table
}

// row is a setting with its value. env is the variable that gave it, if one did.
type row struct {
	setting *Setting
	value   value
	source  Source
	env     string
}

// Bool returns a setting of kind [Bool] or [Presence].
func (v *Values) Bool(key string) bool { return v.get(key, Bool, Presence).on }

// Int returns a setting of kind [Int].
func (v *Values) Int(key string) int64 { return v.get(key, Int).number }

// Size returns a setting of kind [Size], in bytes; it fits an int.
func (v *Values) Size(key string) uint64 { return uint64(v.get(key, Size).number) }

// Duration returns a setting of kind [Duration], never negative.
func (v *Values) Duration(key string) time.Duration {
	return time.Duration(v.get(key, Duration).number)
}

// Text returns a setting of kind [Text] or [Enum].
func (v *Values) Text(key string) string { return v.get(key, Text, Enum).text }

func (v *Values) get(key string, kinds ...Kind) value {
	r := v.rows[key]
	if r == nil {
		panic("config: no table declares " + key)
	}
	if !slices.Contains(kinds, r.setting.Kind) {
		panic("config: " + key + " is a setting of kind " + r.setting.Kind.String())
	}
	return r.value
}

// Resolved is one setting as `moonpath info` prints it.
type Resolved struct {
	Key    string `json:"key"`
	Value  string `json:"value"` // normal form, as a flag would accept it
	Source Source `json:"source"`
	Env    string `json:"env,omitempty"` // the variable that set it, else the one that could
	Help   string `json:"help"`
}

// All returns every setting, sorted by key.
func (v *Values) All() []Resolved {
	all := make([]Resolved, 0, len(v.rows))
	for _, key := range slices.Sorted(maps.Keys(v.rows)) {
		r := v.rows[key]
		env := r.env
		if env == "" && len(r.setting.Env) > 0 {
			env = r.setting.Env[0]
		}
		all = append(all, Resolved{key, r.setting.format(r.value), r.source, env, r.setting.Help})
	}
	return all
}
