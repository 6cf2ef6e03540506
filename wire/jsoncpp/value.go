package jsoncpp

import (
	"bytes"
	"iter"
	"strconv"
	"unicode/utf8"
)

// Kind is what a Value is.
type Kind uint8

// The kinds of JSON values. Absent is that of a nil Value.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// String returns the kind with its article, for messages.
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "a boolean"
	case Number:
		return "a number"
	case String:
		return "a string"
	case Array:
		return "an array"
	case Object:
		return "an object"
	default:
		return "nothing"
	}
}

// Value is the text of one JSON value that Parse has checked, without white
// space around it. It aliases the text given to Parse. The nil Value stands for
// a key that is not there. A Value must come from this package: its methods may
// panic on other bytes.
type Value []byte

// Kind returns what v is.
func (v Value) Kind() Kind {
	if len(v) == 0 {
		return Absent
	}
	switch v[0] {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}
	return Number
}

// Missing reports whether v is absent or null, which peers do not tell apart.
func (v Value) Missing() bool { return v.Kind() <= Null }

// Describe says what v is, with an excerpt, for messages.
func (v Value) Describe() string {
	switch k := v.Kind(); k {
	case Absent, Null:
		return k.String()
	default:
		return k.String() + " " + excerpt(v)
	}
}

// Text returns the string that v holds; ok is false if v is no string. Bytes
// that are not UTF-8 stay as they are.
func (v Value) Text() (text string, ok bool) {
	if v.Kind() != String {
		return "", false
	}
	return string(unquote(v)), true
}

// Uint64 returns the number that v holds; ok is false unless v is a plain
// decimal integer from 0 to 2^64-1.
func (v Value) Uint64() (n uint64, ok bool) {
	n, err := strconv.ParseUint(string(v), 10, 64)
	return n, err == nil
}

// Members yields keys and values of an object in the order of the text,
// repeated keys included; it yields nothing for other kinds. A key is valid
// until the next one.
func (v Value) Members() iter.Seq2[[]byte, Value] {
	return func(yield func([]byte, Value) bool) {
		if v.Kind() != Object {
			return
		}
		for pos := next(v, 1); v[pos] != '}'; {
			colon := skipValue(v, pos)
			key := unquote(v[pos:colon])
			start := next(v, next(v, colon)+1)
			end := skipValue(v, start)
			if !yield(key, v[start:end:end]) {
				return
			}
			pos = next(v, end)
		}
	}
}

// Elements yields the elements of an array; it yields nothing for other kinds.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != Array {
			return
		}
		for pos := next(v, 1); v[pos] != ']'; {
			end := skipValue(v, pos)
			if !yield(v[pos:end:end]) {
				return
			}
			pos = next(v, end)
		}
	}
}

// next skips blanks and at most one comma.
func next(v Value, pos int) int {
	pos = skipBlank(v, pos)
	if v[pos] == ',' {
		pos = skipBlank(v, pos+1)
	}
	return pos
}

// skipValue returns the end of the value at pos.
func skipValue(v Value, pos int) int {
	switch v[pos] {
	case '"':
		return skipString(v, pos)
	case '{', '[':
		return skipContainer(v, pos)
	}
	for ; pos < len(v); pos++ {
		switch v[pos] {
		case ',', ']', '}', '/', ' ', '\t', '\r', '\n':
			return pos
		}
	}
	return pos
}

func skipString(v Value, pos int) int {
	for pos++; v[pos] != '"'; pos++ {
		if v[pos] == '\\' {
			pos++
		}
	}
	return pos + 1
}

func skipContainer(v Value, pos int) int {
	depth := 0
	for {
		switch v[pos] {
		case '"':
			pos = skipString(v, pos)
			continue
		case '/':
			pos += commentLen(v[pos:])
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		pos++
		if depth == 0 {
			return pos
		}
	}
}

// unquote decodes a quoted string; without escapes the result aliases it.
func unquote(quoted Value) []byte {
	text := []byte(quoted[1 : len(quoted)-1])
	i := bytes.IndexByte(text, '\\')
	if i < 0 {
		return text
	}
	out := append(make([]byte, 0, len(text)), text[:i]...)
	for i < len(text) {
		switch {
		case text[i] != '\\':
			out = append(out, text[i])
			i++
		case text[i+1] != 'u':
			out = append(out, unescaped(text[i+1]))
			i += 2
		default:
			r, _ := hexUnit(text, i)
			i += unitLen
			if r&^0x3FF == 0xD800 {
				low, _ := hexUnit(text, i)
				i += unitLen
				r = 0x10000 + (r&0x3FF)<<10 | low&0x3FF
			}
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}
