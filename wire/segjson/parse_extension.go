package segjson

import (
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/moonpath-io/moonpath/wire/jsoncpp"
)

// ErrExtensionTooNew says that a moonpath object needs a newer reader. The peer
// is then treated like a published one.
var ErrExtensionTooNew = errors.New("segjson: the moonpath object needs a newer reader; " +
	"the peer is treated as a published one until this side is upgraded")

// parseExtension reads the moonpath object of a descriptor with that many
// buffers.
func parseExtension(v jsoncpp.Value, buffers int) (*Extension, error) {
	if v.Kind() != jsoncpp.Object {
		return nil, &FieldError{"moonpath", "an object", v.Describe()}
	}
	var schema, minimum, incarnation, host, protocols, tcp, runs jsoncpp.Value
	for key, value := range v.Members() {
		switch string(key) {
		case "schema":
			schema = value
		case "min":
			minimum = value
		case "incarnation":
			incarnation = value
		case "host":
			host = value
		case "protocols":
			protocols = value
		case "tcp":
			tcp = value
		case "buffers":
			runs = value
		}
	}
	// The versions come first: in an object that is too new, nothing else is
	// known to mean what it means here.
	e := &Extension{}
	var err error
	if e.Min, err = number("moonpath.min", minimum, 1); err != nil {
		return nil, err
	}
	if e.Min > ExtensionSchema {
		return nil, ErrExtensionTooNew
	}
	if e.Schema, err = number("moonpath.schema", schema, e.Min); err != nil {
		return nil, err
	}
	if e.Incarnation, err = parseIncarnation(incarnation); err != nil {
		return nil, err
	}
	if e.Host, err = text("moonpath.host", host); err != nil {
		return nil, err
	}
	if e.Host != "" && !isHex16(e.Host) {
		return nil, &FieldError{"moonpath.host", "16 lower-case hex digits", host.Describe()}
	}
	if e.Protocols, err = parseNames(protocols); err != nil {
		return nil, err
	}
	if e.HelloVersion, err = parseHello(tcp); err != nil {
		return nil, err
	}
	if e.Runs, err = parseRuns(runs, buffers, len(e.Protocols)); err != nil {
		return nil, err
	}
	return e, nil
}

func parseIncarnation(v jsoncpp.Value) (uint64, error) {
	digits, _ := v.Text()
	if isHex16(digits) {
		if n, err := strconv.ParseUint(digits, 16, 64); err == nil && n != 0 {
			return n, nil
		}
	}
	return 0, &FieldError{"moonpath.incarnation", "16 lower-case hex digits, not all zero", v.Describe()}
}

func isHex16(s string) bool {
	if len(s) != 16 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func parseNames(v jsoncpp.Value) ([]string, error) {
	var names []string
	for element := range v.Elements() {
		field := "moonpath.protocols[" + strconv.Itoa(len(names)) + "]"
		name, _ := element.Text()
		if name == "" || slices.Contains(names, name) {
			return nil, &FieldError{field, "a name that is not there yet", element.Describe()}
		}
		if len(names) == MaxExtensionProtocols {
			return nil, &FieldError{field, "at most " + strconv.Itoa(MaxExtensionProtocols) + " names", "more"}
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, &FieldError{"moonpath.protocols", "an array of names", v.Describe()}
	}
	return names, nil
}

func parseHello(tcp jsoncpp.Value) (int, error) {
	if tcp.Missing() {
		return 0, nil
	}
	if tcp.Kind() != jsoncpp.Object {
		return 0, &FieldError{"moonpath.tcp", "an object", tcp.Describe()}
	}
	var hello jsoncpp.Value
	for key, value := range tcp.Members() {
		if string(key) == "hello" {
			hello = value
		}
	}
	return number("moonpath.tcp.hello", hello, 0)
}

func parseRuns(v jsoncpp.Value, buffers, protocols int) ([]BufferRun, error) {
	if v.Kind() != jsoncpp.Array {
		return nil, &FieldError{"moonpath.buffers", "an array of [count, mask]", v.Describe()}
	}
	var runs []BufferRun
	left := uint64(buffers)
	known := uint64(math.MaxUint64) >> (MaxExtensionProtocols - protocols)
	for element := range v.Elements() {
		field := "moonpath.buffers[" + strconv.Itoa(len(runs)) + "]"
		count, mask, ok := pair(element)
		if !ok || count == 0 || count > left || mask&^known != 0 {
			return nil, &FieldError{field, "[count, mask] with 1 to " + strconv.FormatUint(left, 10) +
				" buffers and bits of listed protocols", element.Describe()}
		}
		left -= count
		runs = append(runs, BufferRun{Count: int(count), Mask: mask})
	}
	if left != 0 {
		return nil, &FieldError{"moonpath.buffers", "runs for all " + strconv.Itoa(buffers) + " buffers",
			strconv.FormatUint(left, 10) + " fewer"}
	}
	return runs, nil
}

func pair(v jsoncpp.Value) (count, mask uint64, ok bool) {
	n := 0
	for element := range v.Elements() {
		value, isNumber := element.Uint64()
		if !isNumber {
			return 0, 0, false
		}
		if n == 0 {
			count = value
		} else {
			mask = value
		}
		n++
	}
	return count, mask, n == 2
}
