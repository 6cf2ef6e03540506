package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Resolve gives every setting of the table its value: the default, overridden by what the
// layers and the environment say. The strongest [Source] wins, of equals the last layer. Bad
// or doubtful environment variables come back as warnings, in the order of the table; env may
// be nil for none. Errors, joined, are [*BadValue] and [*UnknownKey]; then there are no
// values.
//
// A table with a key twice, or with a default that its own kind rejects, is a programming
// error and panics.
func Resolve(table []Setting, env func(string) (string, bool), layers ...Layer) (*Values, []Warning, error) {
	v := newValues(table)
	var warnings []Warning
	if env != nil {
		warnings = append(v.readEnvironment(env), v.settleEnvPorts()...)
	}
	var errs []error
	for _, l := range layers {
		errs = append(errs, v.readLayer(l)...)
	}
	if err := errors.Join(append(errs, v.checkPorts())...); err != nil {
		return nil, warnings, err
	}
	return v, warnings, nil
}

func newValues(table []Setting) *Values {
	v := &Values{rows: make(map[string]*row, len(table))}
	for i := range table {
		s := &table[i]
		if v.rows[s.Key] != nil {
			panic("config: the table declares " + s.Key + " twice")
		}
		r := defaultRow(s)
		v.rows[s.Key] = &r
		v.order = append(v.order, s.Key)
	}
	return v
}

func defaultRow(s *Setting) row {
	parsed, err := s.parse(s.Default)
	if err != nil {
		panic("config: the default " + s.Default + " of " + s.Key + " is not " + s.want())
	}
	return row{setting: s, value: parsed}
}

func (v *Values) readLayer(l Layer) (errs []error) {
	if l.Source != File && l.Source != Flag && l.Source != Code {
		return []error{fmt.Errorf("config: a layer cannot have the source %s: use file, flag or code", l.Source)}
	}
	for _, key := range slices.Sorted(maps.Keys(l.Values)) {
		text := l.Values[key]
		r := v.rows[key]
		if r == nil {
			errs = append(errs, &UnknownKey{Key: key, Source: l.Source, Nearest: nearest(key, v.order)})
			continue
		}
		parsed, err := r.setting.parse(text)
		if err != nil {
			errs = append(errs, &BadValue{Key: key, Value: text, Want: r.setting.want(), Source: l.Source})
			continue
		}
		if l.Source >= r.source {
			r.value, r.source, r.env = parsed, l.Source, ""
		}
	}
	return errs
}
