package jsoncpp

import (
	"bytes"
	"strconv"
)

// unitLen is the length of one \uXXXX escape.
const unitLen = 6

// excerptLen is how much of a text an error message shows.
const excerptLen = 32

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func closing(bracket byte) byte {
	if bracket == '{' {
		return '}'
	}
	return ']'
}

// skipBlank returns the position behind white space and comments, or -1 if a
// slash starts no complete comment.
func skipBlank(src []byte, pos int) int {
	for pos < len(src) {
		switch src[pos] {
		case ' ', '\t', '\r', '\n':
			pos++
		case '/':
			n := commentLen(src[pos:])
			if n < 0 {
				return -1
			}
			pos += n
		default:
			return pos
		}
	}
	return pos
}

func commentLen(src []byte) int {
	if bytes.HasPrefix(src, []byte("/*")) {
		if i := bytes.Index(src[2:], []byte("*/")); i >= 0 {
			return i + 4
		}
		return -1
	}
	if bytes.HasPrefix(src, []byte("//")) {
		if i := bytes.IndexByte(src, '\n'); i >= 0 {
			return i + 1
		}
		return len(src)
	}
	return -1
}

// hexUnit reads the escape \uXXXX at pos.
func hexUnit(src []byte, pos int) (rune, bool) {
	if len(src)-pos < unitLen || src[pos] != '\\' || src[pos+1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(src[pos+2:pos+unitLen]), 16, 16)
	return rune(unit), err == nil
}

// unescaped returns the character behind a backslash, decoded, or 0.
func unescaped(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return 0
}

func excerpt(src []byte) string {
	if len(src) > excerptLen {
		return strconv.Quote(string(src[:excerptLen])) + "..."
	}
	return strconv.Quote(string(src))
}
