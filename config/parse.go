package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value is a parsed setting. number holds bytes for Size and nanoseconds for Duration.
type value struct {
	on     bool
	number int64
	text   string
}

var errNotAccepted = errors.New("not accepted")

// parse reads text as a file, a flag or code may write it.
func (s *Setting) parse(text string) (value, error) {
	switch s.Kind {
	case Bool, Presence:
		switch {
		case isWord(text, onWords):
			return value{on: true}, nil
		case isWord(text, offWords):
			return value{}, nil
		}
		return value{}, errNotAccepted
	case Int:
		n, err := strconv.ParseInt(text, 10, 64)
		return s.bounded(n, err)
	case Size:
		n, err := ParseSize(text)
		return s.bounded(int64(n), err)
	case Duration:
		d, err := ParseDuration(text, s.Unit)
		return s.bounded(int64(d), err)
	case Enum:
		if !slices.Contains(s.Choices, text) {
			return value{}, errNotAccepted
		}
	}
	return value{text: text}, nil
}

var (
	onWords  = []string{"true", "yes", "on", "1"}
	offWords = []string{"false", "no", "off", "0"}
)

func isWord(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, text) })
}

func (s *Setting) bounded(n int64, err error) (value, error) {
	if err == nil && (n < s.Min || s.Max != 0 && n > s.Max) {
		err = errNotAccepted
	}
	return value{number: n}, err
}

// want describes what parse accepts, as a noun phrase.
func (s *Setting) want() string {
	switch s.Kind {
	case Bool, Presence:
		return "true or false"
	case Int:
		return "a whole number" + s.bounds()
	case Size:
		return "a size such as 64KiB" + s.bounds()
	case Duration:
		return "a duration such as 500ms" + s.bounds()
	case Enum:
		return "one of " + strings.Join(s.Choices, ", ")
	}
	return "a text"
}

func (s *Setting) bounds() string {
	switch {
	case s.Max != 0:
		return " (" + s.format(value{number: s.Min}) + " to " + s.format(value{number: s.Max}) + ")"
	case s.Min != 0:
		return " (at least " + s.format(value{number: s.Min}) + ")"
	}
	return ""
}

// format writes a value so that parse reads it back.
func (s *Setting) format(v value) string {
	switch s.Kind {
	case Bool, Presence:
		return strconv.FormatBool(v.on)
	case Int:
		return strconv.FormatInt(v.number, 10)
	case Size:
		return FormatSize(uint64(v.number))
	case Duration:
		return time.Duration(v.number).String()
	}
	return v.text
}
