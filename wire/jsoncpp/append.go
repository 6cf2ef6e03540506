package jsoncpp

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// AppendString appends s to dst as a quoted JSON string that is pure ASCII:
// other characters become \u escapes in lower-case hex, as surrogate pairs
// beyond U+FFFF, and each byte of invalid UTF-8 becomes \ufffd.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	plain := 0 // start of the run that needs no escape
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[plain:i]...)
		r, size := utf8.DecodeRuneInString(s[i:])
		dst = appendEscape(dst, r)
		i += size
		plain = i
	}
	dst = append(dst, s[plain:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	if r > 0xFFFF {
		r -= 0x10000
		dst = appendUnit(dst, 0xD800|r>>10)
		r = 0xDC00 | r&0x3FF
	}
	return appendUnit(dst, r)
}

func appendUnit(dst []byte, u rune) []byte {
	return append(dst, '\\', 'u', hexDigits[u>>12&15], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}
