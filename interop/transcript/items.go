package transcript

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// message parses a list of items.
func (p *parser) message(s string) (Message, error) {
	var m Message
	var fixed []byte // of the hex items so far; neighbours are one item
	flush := func() {
		if len(fixed) > 0 {
			m = append(m, Hex(fixed))
			fixed = nil
		}
	}
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		if s[0] == '`' || strings.HasPrefix(s, "any(") {
			i, after, err := p.quotedItem(s)
			if err != nil {
				return nil, err
			}
			flush()
			m, s = append(m, i), after
			continue
		}
		var word string
		word, s, _ = strings.Cut(s, " ")
		if b, err := hex.DecodeString(word); err == nil && len(b) == 1 {
			fixed = append(fixed, b...)
			continue
		}
		i, err := p.item(word)
		if err != nil {
			return nil, err
		}
		flush()
		m = append(m, i)
	}
	flush()
	if len(m) == 0 {
		return nil, p.fail("want at least one item")
	}
	return m, nil
}

// quotedItem parses the item at the beginning of s if it is one that can hold blanks.
func (p *parser) quotedItem(s string) (i Item, after string, err error) {
	content, isAny := strings.CutPrefix(s, "any(")
	if content[:min(1, len(content))] == "`" {
		end := "`"
		if isAny {
			end = "`)"
		}
		text, after, ok := strings.Cut(content[1:], end)
		switch {
		case !ok || !IsText(text):
			return Item{}, "", p.fail("text without an end, empty, or with more than printable ASCII: %s", clip(s))
		case isAny:
			return Any([]byte(text)), after, nil
		}
		return Text(text), after, nil
	}
	digits, after, ok := strings.Cut(content, ")")
	b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	if !ok || err != nil || len(b) == 0 {
		return Item{}, "", p.fail("want any(`TEXT`) or any(HEX): %s", clip(s))
	}
	return Any(b), after, nil
}

func clip(s string) string { return s[:min(len(s), 40)] }

// item parses an item that is a single word, other than hex.
func (p *parser) item(word string) (Item, error) {
	if word == "rest64" {
		return Rest64(), nil
	}
	name, arg, ok := strings.Cut(word, "(")
	arg, closed := strings.CutSuffix(arg, ")")
	if !ok || !closed {
		return Item{}, p.fail("%q is no item", clip(word))
	}
	switch name {
	case "u64":
		r, err := p.ref(arg)
		return U64(r), err
	case "dec":
		r, err := p.ref(arg)
		return Dec(r), err
	case "str":
		if p.symbols[arg] != stringSymbol {
			return Item{}, p.fail("%q was not declared as a string", arg)
		}
		return Str(arg), nil
	case "pattern":
		return p.patternItem(arg)
	}
	return Item{}, p.fail("%q is no item", clip(word))
}

func (p *parser) patternItem(arg string) (Item, error) {
	var v [3]uint64
	fields := strings.Split(arg, ",")
	if len(fields) != len(v) {
		return Item{}, p.fail("want pattern(SEED,FROM,TO)")
	}
	for n, f := range fields {
		var err error
		if v[n], err = p.uint(f); err != nil {
			return Item{}, err
		}
	}
	if v[1] >= v[2] || v[2] > maxPattern {
		return Item{}, p.fail("pattern(%s): want FROM < TO <= %d", arg, maxPattern)
	}
	return Pattern(v[0], v[1], v[2]), nil
}

// ref parses a declared number or region, plus or minus an offset.
func (p *parser) ref(s string) (Ref, error) {
	r := Ref{Symbol: s}
	if at := strings.IndexAny(s, "+-"); at >= 0 {
		offset, err := strconv.ParseInt(s[at:], 10, 64)
		if err != nil {
			return Ref{}, p.fail("offset %q is no number", s[at:])
		}
		r = Ref{Symbol: s[:at], Offset: offset}
	}
	if p.symbols[r.Symbol] != numberSymbol {
		return Ref{}, p.fail("%q was not declared as a number or a region", clip(r.Symbol))
	}
	return r, nil
}
