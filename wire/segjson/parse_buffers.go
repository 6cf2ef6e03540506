package segjson

import (
	"bytes"
	"errors"
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
		b, skip, err := parseBuffer(element, protocol, &last)
		if err != nil {
			return nil, inBuffer(index, err)
		}
		if !skip {
			buffers = append(buffers, b)
		}
		index++
	}
	return buffers, nil
}

// inBuffer completes the field of an error. Only then is its name made, since
// names for every field of every entry would cost more than the entries.
func inBuffer(index int, err error) error {
	if e, ok := errors.AsType[*FieldError](err); ok {
		e.Field = "buffers[" + strconv.Itoa(index) + "]" + e.Field
	}
	return err
}

// parseBuffer reads one entry; fields of its errors are relative to it. skip is
// set for entries of protocols that name their memory by something else than an
// address.
func parseBuffer(v jsoncpp.Value, protocol string, last *lastName) (b Buffer, skip bool, err error) {
	if v.Kind() != jsoncpp.Object {
		return b, false, &FieldError{"", "an object", v.Describe()}
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
	if b.Protocol, err = text(".protocol", own); err != nil {
		return b, false, err
	}
	if b.Protocol != "" {
		protocol = b.Protocol
	}
	if addr.Kind() == jsoncpp.Absent && protocol != ProtocolTCP {
		return b, true, nil
	}
	if b.Addr, err = integer(".addr", addr, 1, math.MaxUint64); err != nil {
		return b, false, err
	}
	if b.Length, err = integer(".length", length, 1, math.MaxUint64); err != nil {
		return b, false, err
	}
	if b.Addr+b.Length < b.Addr {
		return b, false, &FieldError{".length", "a range that ends below 2^64", length.Describe()}
	}
	if b.Name = last.read(name); b.Name == "" {
		return b, false, &FieldError{".name", "a string that is not empty", name.Describe()}
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
