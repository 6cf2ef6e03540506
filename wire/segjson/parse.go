package segjson

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/moonpath-io/moonpath/wire/jsoncpp"
)

// Parse reads a descriptor. Unknown keys are ignored; of repeated keys the last
// counts. The result shares no memory with text. The error wraps ErrNotAvailable
// or a *jsoncpp.SyntaxError, or is a *FieldError; an extension that cannot be
// used is reported in the result instead.
func Parse(text []byte) (*Descriptor, error) {
	root, err := jsoncpp.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("segjson: the descriptor is %w; check that the peer is a transfer engine", err)
	}
	if root.Kind() != jsoncpp.Object {
		return nil, fmt.Errorf("%w (the peer sent %s)", ErrNotAvailable, root.Describe())
	}
	return parseObject(root)
}

// fields holds the last value of each known key.
type fields struct {
	name, protocol, dataHost, dataPort, protoVersion jsoncpp.Value
	rdmaName, timestamp, buffers, moonpath           jsoncpp.Value
}

func collect(root jsoncpp.Value) fields {
	var f fields
	for key, value := range root.Members() {
		switch string(key) {
		case "name":
			f.name = value
		case "protocol":
			f.protocol = value
		case "tcp_data_host":
			f.dataHost = value
		case "tcp_data_port":
			f.dataPort = value
		case "tcp_proto_version":
			f.protoVersion = value
		case "rdma_server_name":
			f.rdmaName = value
		case "timestamp":
			f.timestamp = value
		case "buffers":
			f.buffers = value
		case "moonpath":
			f.moonpath = value
		}
	}
	return f
}

func parseObject(root jsoncpp.Value) (*Descriptor, error) {
	f := collect(root)
	protocols, err := parseProtocols(f.protocol)
	if err != nil {
		return nil, err
	}
	d := &Descriptor{Protocols: protocols}
	if d.Name, err = text("name", f.name); err != nil {
		return nil, err
	}
	if d.RDMAServerName, err = text("rdma_server_name", f.rdmaName); err != nil {
		return nil, err
	}
	if d.Timestamp, err = text("timestamp", f.timestamp); err != nil {
		return nil, err
	}
	d.TCPDataHost, _ = f.dataHost.Text() // published readers take other types as absent
	port, err := integer("tcp_data_port", f.dataPort, 0, math.MaxUint16)
	if err != nil {
		return nil, err
	}
	d.TCPDataPort = uint16(port)
	if d.TCPProtoVersion, err = number("tcp_proto_version", f.protoVersion, 0); err != nil {
		return nil, err
	}
	if d.Buffers, err = parseBuffers(f.buffers, protocols[0]); err != nil {
		return nil, err
	}
	if !f.moonpath.Missing() {
		d.Moonpath, d.ExtensionError = parseExtension(f.moonpath, len(d.Buffers))
	}
	return d, nil
}

// parseProtocols accepts the forms of all builds: one name, names joined by
// commas, an array of names.
func parseProtocols(v jsoncpp.Value) ([]string, error) {
	var names []string
	switch v.Kind() {
	case jsoncpp.Absent, jsoncpp.Null:
	case jsoncpp.String:
		joined, _ := v.Text()
		names = slices.DeleteFunc(strings.Split(joined, ","), func(name string) bool { return name == "" })
	case jsoncpp.Array:
		for element := range v.Elements() {
			name, ok := element.Text()
			if !ok || name == "" {
				return nil, &FieldError{"protocol[" + strconv.Itoa(len(names)) + "]", "a name", element.Describe()}
			}
			names = append(names, name)
		}
	default:
		return nil, &FieldError{"protocol", "a string or an array of strings", v.Describe()}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w (it names no protocol)", ErrNotAvailable)
	}
	return names, nil
}

// text reads a string; a missing one is empty.
func text(field string, v jsoncpp.Value) (string, error) {
	s, ok := v.Text()
	if !ok && !v.Missing() {
		return "", &FieldError{field, "a string", v.Describe()}
	}
	return s, nil
}

// integer reads a number in [low, high]; a missing one is 0.
func integer(field string, v jsoncpp.Value, low, high uint64) (uint64, error) {
	n, ok := v.Uint64()
	if (!ok && !v.Missing()) || n < low || n > high {
		want := "an integer from " + strconv.FormatUint(low, 10) + " to " + strconv.FormatUint(high, 10)
		return 0, &FieldError{field, want, v.Describe()}
	}
	return n, nil
}

// number is integer for what fits into 31 bits.
func number(field string, v jsoncpp.Value, low int) (int, error) {
	n, err := integer(field, v, uint64(low), math.MaxInt32)
	return int(n), err
}
