package transcript

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/moonpath-io/moonpath/interop/pattern"
)

// maxPattern bounds what a line of a file can make a reader allocate.
const maxPattern = 64 << 20

// Message is a list of items that stand for bytes.
type Message []Item

// Item is one part of a message: fixed bytes, or bytes that depend on the value of a symbol. Items are made by Hex, Text,
// Any, U64, Dec, Str, Pattern and Rest64.
type Item struct {
	form     form
	bytes    string // of formHex, formText and formAny; a string, so that items compare
	ref      Ref    // of formU64, formDec and, without an offset, formStr
	seed     uint64 // of formPattern
	from, to uint64 // of formPattern
}

type form int

const (
	formHex form = iota
	formText
	formAny
	formU64
	formDec
	formStr
	formPattern
	formRest64
)

// Hex is fixed bytes, written in hex.
func Hex(b []byte) Item { return Item{form: formHex, bytes: string(b)} }

// Text is fixed bytes, written as text; it is for non-empty printable ASCII without a backquote, see IsText.
func Text(s string) Item { return Item{form: formText, bytes: s} }

// Any is bytes that mean nothing to the receiver or are new in every run, such as a time stamp: a replay sends them as
// recorded and accepts others of the same length.
func Any(b []byte) Item { return Item{form: formAny, bytes: string(b)} }

// U64 is a number as eight little-endian bytes.
func U64(r Ref) Item { return Item{form: formU64, ref: r} }

// Dec is a number in decimal digits.
func Dec(r Ref) Item { return Item{form: formDec, ref: r} }

// Str is the text of a string symbol.
func Str(symbol string) Item { return Item{form: formStr, ref: Ref{Symbol: symbol}} }

// Pattern is bytes from up to, not including, to of pattern.Bytes(seed, to).
func Pattern(seed, from, to uint64) Item {
	return Item{form: formPattern, seed: seed, from: from, to: to}
}

// Rest64 is the number of bytes behind it in its message, as eight little-endian bytes.
func Rest64() Item { return Item{form: formRest64} }

// IsText says whether Text can hold s.
func IsText(s string) bool {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '`' {
			return false
		}
	}
	return s != ""
}

// Bytes returns what the message stands for under b.
func (m Message) Bytes(b Bindings) ([]byte, error) {
	out, _, err := m.render(b)
	return out, err
}

// Like returns what the message stands for under b, but with the bytes of got where any will do: the message matches got
// exactly if the result equals it.
func (m Message) Like(got []byte, b Bindings) ([]byte, error) {
	out, free, err := m.render(b)
	if err != nil {
		return nil, err
	}
	for _, f := range free {
		if f.from < len(got) {
			copy(out[f.from:f.to], got[f.from:])
		}
	}
	return out, nil
}

// span is a range of the bytes of a message.
type span struct{ from, to int }

// render returns the bytes of the message and which of them come from Any.
func (m Message) render(b Bindings) (out []byte, free []span, err error) {
	var counted []int // where the values of rest64 belong
	for _, i := range m {
		from := len(out)
		if out, err = i.appendTo(out, b); err != nil {
			return nil, nil, err
		}
		switch i.form {
		case formRest64:
			counted = append(counted, from)
		case formAny:
			free = append(free, span{from, len(out)})
		}
	}
	for _, at := range counted {
		binary.LittleEndian.PutUint64(out[at:], uint64(len(out)-at-8))
	}
	return out, free, nil
}

func (i Item) appendTo(out []byte, b Bindings) ([]byte, error) {
	switch i.form {
	case formHex, formText, formAny:
		return append(out, i.bytes...), nil
	case formU64:
		v, err := i.ref.Value(b)
		return binary.LittleEndian.AppendUint64(out, v), err
	case formDec:
		v, err := i.ref.Value(b)
		return strconv.AppendUint(out, v, 10), err
	case formStr:
		s, ok := b.Strings[i.ref.Symbol]
		if !ok {
			return nil, &UnboundSymbol{Symbol: i.ref.Symbol}
		}
		return append(out, s...), nil
	case formPattern:
		if i.from > i.to || i.to > maxPattern {
			return nil, fmt.Errorf("transcript: %s: want from <= to <= %d", i, maxPattern)
		}
		return append(out, pattern.Bytes(i.seed, int(i.to))[i.from:]...), nil
	case formRest64:
		return append(out, make([]byte, 8)...), nil
	}
	return nil, fmt.Errorf("transcript: item of unknown form %d", i.form)
}

// String returns the item as it stands in a file.
func (i Item) String() string {
	switch i.form {
	case formHex:
		return spacedHex(i.bytes)
	case formText:
		return "`" + i.bytes + "`"
	case formAny:
		if IsText(i.bytes) {
			return "any(`" + i.bytes + "`)"
		}
		return "any(" + spacedHex(i.bytes) + ")"
	case formU64:
		return "u64(" + i.ref.String() + ")"
	case formDec:
		return "dec(" + i.ref.String() + ")"
	case formStr:
		return "str(" + i.ref.Symbol + ")"
	case formPattern:
		return fmt.Sprintf("pattern(%d,%d,%d)", i.seed, i.from, i.to)
	case formRest64:
		return "rest64"
	}
	return fmt.Sprintf("form%d", i.form)
}

func spacedHex(b string) string {
	return fmt.Sprintf("% x", b)
}

// String returns the message as it stands in a file.
func (m Message) String() string {
	texts := make([]string, len(m))
	for n, i := range m {
		texts[n] = i.String()
	}
	return strings.Join(texts, " ")
}

// String returns r as it stands in a file, such as A+16.
func (r Ref) String() string {
	if r.Offset == 0 {
		return r.Symbol
	}
	return fmt.Sprintf("%s%+d", r.Symbol, r.Offset)
}
