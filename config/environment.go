package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// readEnvironment takes what the variables of the table say and warns about what it could
// not take, or took in a way that the writer may not expect.
func (v *Values) readEnvironment(env func(string) (string, bool)) (warnings []Warning) {
	for _, key := range v.order {
		r := v.rows[key]
		name, text, found := firstSet(r.setting.Env, env)
		if !found {
			continue
		}
		if name != r.setting.Env[0] {
			warnings = append(warnings, Warning{name, "this is an old name: use " + r.setting.Env[0]})
		}
		parsed, note := r.setting.parseEnv(text)
		if note != "" {
			warnings = append(warnings, Warning{name, note})
		}
		if parsed != nil {
			r.value, r.source, r.env = *parsed, Environment, name
		}
	}
	return warnings
}

func firstSet(names []string, env func(string) (string, bool)) (name, text string, found bool) {
	for _, name := range names {
		if text, found := env(name); found {
			return name, text, true
		}
	}
	return "", "", false
}

// parseEnv reads text as the reference reads its environment. It returns nil where the
// default stays, and a note where something is to be said.
func (s *Setting) parseEnv(text string) (parsed *value, note string) {
	var v value
	var err error
	switch s.Kind {
	case Presence:
		v.on = true
	case Bool:
		v, err = s.parseEnvBool(text)
	case Int, Size, Duration:
		v, note, err = s.parseEnvNumber(text)
	default:
		v, err = s.parse(text)
	}
	if err != nil {
		return nil, fmt.Sprintf("%q is not %s: %s stays at %s", text, s.wantEnv(), s.Key, s.Default)
	}
	return &v, note
}

func (s *Setting) parseEnvBool(text string) (value, error) {
	switch {
	case s.On == nil && s.Off == nil:
		return s.parse(text)
	case isWord(text, s.On):
		return value{on: true}, nil
	case isWord(text, s.Off):
		return value{}, nil
	case s.On == nil || s.Off == nil:
		return value{on: s.On == nil}, nil
	}
	return value{}, errNotAccepted
}

// parseEnvNumber reads digits: the reference knows no units in its environment.
func (s *Setting) parseEnvNumber(text string) (v value, note string, err error) {
	n, rest, err := s.leadingNumber(text)
	if err != nil {
		return value{}, "", err
	}
	n = timesUnit(n, s.envUnit())
	if s.Floor != 0 && n < s.Floor {
		n = s.Floor
		note = fmt.Sprintf("%q is less than the least value: %s is %s", text, s.Key, s.format(value{number: n}))
	} else if rest != "" {
		note = fmt.Sprintf("%q is not a plain number: %q was dropped, %s is %s",
			text, rest, s.Key, s.format(value{number: n}))
	}
	v, err = s.bounded(n, nil)
	return v, note, err
}

// leadingNumber splits text into a number and what follows it; only a Lenient setting
// accepts a sign, spaces in front, and a rest.
func (s *Setting) leadingNumber(text string) (n int64, rest string, err error) {
	if !s.Lenient {
		u, err := strconv.ParseUint(text, 10, 63)
		return int64(u), "", err
	}
	number := strings.TrimLeft(text, " \t\n\v\f\r")
	end := len(number) - len(strings.TrimLeft(strings.TrimLeft(number, "+-"), "0123456789"))
	n, err = strconv.ParseInt(number[:end], 10, 64)
	if err != nil {
		return 0, text, nil
	}
	return n, number[end:], nil
}

func (s *Setting) envUnit() int64 {
	if s.Kind == Duration {
		return int64(s.Unit)
	}
	return 1
}

// timesUnit multiplies, at most up to the largest number.
func timesUnit(n, unit int64) int64 {
	if n > math.MaxInt64/unit {
		return math.MaxInt64
	}
	return max(n, math.MinInt64/unit) * unit
}

func (s *Setting) wantEnv() string {
	switch s.Kind {
	case Int, Size:
		return "a plain number" + s.bounds()
	case Duration:
		return "a plain number in units of " + s.Unit.String() + s.bounds()
	}
	return s.want()
}
