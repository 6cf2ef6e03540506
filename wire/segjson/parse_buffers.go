package segjson

import (
	"bytes"
	"math"
	"strconv"

	"github.com/moonpath-io/moonpath/wire/jsoncpp"
)

func parseBuffers(v jsoncpp.Value, protocol string) ([]Buffer, error) {
	if v.Missing() {
		return nil, nil
	}
	if v.Kind() != jsoncpp.Array {
		return nil, &FieldError{"buffers", "an array", v.Describe()}
	}
	var buffers []Buffer
	index := 0
	var last lastName
	for element := range v.Elements() {
		if index == MaxBuffers {
			return nil, &FieldError{"buffers", "at most " + strconv.Itoa(MaxBuffers), "more"}
		}
		b, skip, err := parseBuffer(element, index, protocol, &last)
		if err != nil {
			return nil, err
		}
		if !skip {
			buffers = append(buffers, b)
		}
		index++
	}
	return buffers, nil
}

// parseBuffer reads one entry. skip is set for entries of protocols that name
// their memory by something else than an address.
func parseBuffer(v jsoncpp.Value, index int, protocol string, last *lastName) (b Buffer, skip bool, err error) {
	field := func(name string) string { return "buffers[" + strconv.Itoa(index) + "]" + name }
	if v.Kind() != jsoncpp.Object {
		return b, false, &FieldError{field(""), "an object", v.Describe()}
	}
	var name, addr, length, own jsoncpp.Value
	for key, value := range v.Members() {
		switch string(key) {
		case "name":
			name = value
		case "addr":
			addr = value
		case "length":
			length = value
		case "protocol":
			own = value
		}
	}
	if b.Protocol, err = text(field(".protocol"), own); err != nil {
		return b, false, err
	}
	if b.Protocol != "" {
		protocol = b.Protocol
	}
	if addr.Kind() == jsoncpp.Absent && protocol != ProtocolTCP {
		return b, true, nil
	}
	if b.Addr, err = integer(field(".addr"), addr, 1, math.MaxUint64); err != nil {
		return b, false, err
	}
	if b.Length, err = integer(field(".length"), length, 1, math.MaxUint64); err != nil {
		return b, false, err
	}
	if b.Addr+b.Length < b.Addr {
		return b, false, &FieldError{field(".length"), "a range that ends below 2^64", length.Describe()}
	}
	if b.Name = last.read(name); b.Name == "" {
		return b, false, &FieldError{field(".name"), "a string that is not empty", name.Describe()}
	}
	return b, false, nil
}

// lastName shares one string among entries of the same name, as nearly all are.
type lastName struct {
	quoted jsoncpp.Value
	text   string
}

// read returns "" for what is no string.
func (l *lastName) read(v jsoncpp.Value) string {
	if !bytes.Equal(v, l.quoted) {
		l.text, _ = v.Text()
		l.quoted = v
	}
	return l.text
}
