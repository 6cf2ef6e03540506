package jsoncpp

import (
	"bytes"
	"strconv"
)

// SyntaxError says where a text stops being JSON.
type SyntaxError struct {
	Offset int    // in bytes, from the start of the text
	Want   string // what would have been right there
	Have   string // what is there
}

// Error implements error.
func (e *SyntaxError) Error() string {
	return "not JSON at byte " + strconv.Itoa(e.Offset) + ": want " + e.Want + ", have " + e.Have
}

// Parse checks the first value in src and returns it, as a part of src. What
// follows that value is not looked at. The error is a *SyntaxError.
func Parse(src []byte) (Value, error) {
	s := scanner{src: src}
	if err := s.blank(); err != nil {
		return nil, err
	}
	start := s.pos
	if err := s.value(); err != nil {
		return nil, err
	}
	return Value(src[start:s.pos:s.pos]), nil
}

// scanner checks syntax. open holds the brackets that are still open.
type scanner struct {
	src  []byte
	pos  int
	open []byte
}

func (s *scanner) value() error {
	for {
		if err := s.blank(); err != nil {
			return err
		}
		entered, err := s.begin()
		if err != nil {
			return err
		}
		if entered {
			continue
		}
		if done, err := s.end(); done || err != nil {
			return err
		}
	}
}

// begin reads a scalar, an empty container, or the start of a container up to
// its first value; entered tells the last case.
func (s *scanner) begin() (entered bool, err error) {
	switch c := s.peek(); {
	case c == '{' || c == '[':
		s.pos++
		if err := s.blank(); err != nil {
			return false, err
		}
		if s.peek() == closing(c) {
			s.pos++
			return false, nil
		}
		s.open = append(s.open, c)
		if c == '{' {
			return true, s.key()
		}
		return true, nil
	case c == '"':
		return false, s.text()
	case c == '-' || isDigit(c):
		return false, s.number()
	case c == 't':
		return false, s.literal("true")
	case c == 'f':
		return false, s.literal("false")
	case c == 'n':
		return false, s.literal("null")
	}
	return false, s.fail("a value")
}

// end reads what follows a value: closing brackets, then a comma and, in an
// object, the next key. done means that the outermost value is complete.
func (s *scanner) end() (done bool, err error) {
	for len(s.open) > 0 {
		if err := s.blank(); err != nil {
			return false, err
		}
		inner := s.open[len(s.open)-1]
		switch s.peek() {
		case closing(inner):
			s.pos++
			s.open = s.open[:len(s.open)-1]
		case ',':
			s.pos++
			if inner == '{' {
				return false, s.key()
			}
			return false, nil
		default:
			return false, s.fail("',' or '" + string(rune(closing(inner))) + "'")
		}
	}
	return true, nil
}

func (s *scanner) key() error {
	if err := s.blank(); err != nil {
		return err
	}
	if s.peek() != '"' {
		return s.fail("a key in double quotes")
	}
	if err := s.text(); err != nil {
		return err
	}
	if err := s.blank(); err != nil {
		return err
	}
	if s.peek() != ':' {
		return s.fail("':'")
	}
	s.pos++
	return nil
}

func (s *scanner) text() error {
	start := s.pos
	s.pos++
	for s.pos < len(s.src) {
		switch s.src[s.pos] {
		case '"':
			s.pos++
			return nil
		case '\\':
			if err := s.escape(); err != nil {
				return err
			}
		default:
			s.pos++
		}
	}
	return &SyntaxError{Offset: start, Want: "a string with its closing quote", Have: "none before the end"}
}

func (s *scanner) escape() error {
	if s.pos+1 < len(s.src) && s.src[s.pos+1] != 'u' {
		if unescaped(s.src[s.pos+1]) == 0 {
			return s.fail("a JSON escape")
		}
		s.pos += 2
		return nil
	}
	unit, ok := hexUnit(s.src, s.pos)
	if !ok {
		return s.fail(`\u and four hex digits`)
	}
	if unit&^0x7FF != 0xD800 {
		s.pos += unitLen
		return nil
	}
	low, ok := hexUnit(s.src, s.pos+unitLen)
	if !ok || unit >= 0xDC00 || low&^0x3FF != 0xDC00 {
		return s.fail("a surrogate pair")
	}
	s.pos += 2 * unitLen
	return nil
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++ // a digit behind it belongs to no number
	} else if err := s.digits(); err != nil {
		return err
	}
	if s.peek() == '.' {
		s.pos++
		if err := s.digits(); err != nil {
			return err
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		return s.digits()
	}
	return nil
}

func (s *scanner) digits() error {
	if !isDigit(s.peek()) {
		return s.fail("a digit")
	}
	for isDigit(s.peek()) {
		s.pos++
	}
	return nil
}

func (s *scanner) literal(word string) error {
	if !bytes.HasPrefix(s.src[s.pos:], []byte(word)) {
		return s.fail(word)
	}
	s.pos += len(word)
	return nil
}

// blank skips white space and comments.
func (s *scanner) blank() error {
	pos := skipBlank(s.src, s.pos)
	if pos < 0 {
		return s.fail("a comment with its end")
	}
	s.pos = pos
	return nil
}

// peek returns 0 at the end of the text, which starts no token.
func (s *scanner) peek() byte {
	if s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

func (s *scanner) fail(want string) error {
	have := "the end of the text"
	if s.pos < len(s.src) {
		have = excerpt(s.src[s.pos:])
	}
	return &SyntaxError{Offset: s.pos, Want: want, Have: have}
}
