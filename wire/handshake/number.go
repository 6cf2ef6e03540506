package handshake

import (
	"strconv"
	"strings"

	"github.com/moonpath-io/moonpath/wire/jsoncpp"
)

// numberText converts a number as published receivers do: integers of 64 bits
// exactly, all others as a double with 17 digits that still looks like one.
func numberText(v jsoncpp.Value) (string, bool) {
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return strconv.FormatInt(n, 10), true
	}
	if n, ok := v.Uint64(); ok {
		return strconv.FormatUint(n, 10), true
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return "", false
	}
	text := strconv.FormatFloat(f, 'g', 17, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text, true
}
