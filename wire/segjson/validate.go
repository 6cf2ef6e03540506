package segjson

import (
	"slices"
	"strconv"
	"strings"
)

// Validate says whether peers can read what Append would write. It returns nil
// or a *FieldError. A descriptor that fails here would be unreadable for every
// peer, because readers refuse the whole for one bad buffer.
func (d *Descriptor) Validate() error {
	if d.Name == "" {
		return &FieldError{"name", "a server name", "an empty string"}
	}
	if err := validNames("protocols", d.Protocols); err != nil {
		return err
	}
	if d.TCPProtoVersion < 1 {
		return &FieldError{"tcp_proto_version", "a number from 1", strconv.Itoa(d.TCPProtoVersion)}
	}
	if len(d.Buffers) > MaxBuffers {
		return &FieldError{"buffers", "at most " + strconv.Itoa(MaxBuffers), strconv.Itoa(len(d.Buffers))}
	}
	for i := range d.Buffers {
		if err := d.Buffers[i].validate(i); err != nil {
			return err
		}
	}
	if d.Moonpath != nil {
		return d.Moonpath.validate(len(d.Buffers))
	}
	return nil
}

func (b *Buffer) validate(index int) error {
	field := func(name string) string { return "buffers[" + strconv.Itoa(index) + "]." + name }
	switch {
	case b.Name == "":
		return &FieldError{field("name"), "a string that is not empty", "an empty string"}
	case b.Addr == 0:
		return &FieldError{field("addr"), "an address above 0", "0"}
	case b.Length == 0:
		return &FieldError{field("length"), "a length above 0", "0"}
	case b.Addr+b.Length < b.Addr:
		return &FieldError{field("length"), "a range that ends below 2^64", strconv.FormatUint(b.Length, 10)}
	}
	return nil
}

func (e *Extension) validate(buffers int) error {
	if e.Min < 1 || e.Schema < e.Min {
		return &FieldError{"moonpath.min", "1 <= min <= schema",
			"min " + strconv.Itoa(e.Min) + ", schema " + strconv.Itoa(e.Schema)}
	}
	if e.Incarnation == 0 {
		return &FieldError{"moonpath.incarnation", "a number above 0", "0"}
	}
	if e.Host != "" && !isHex16(e.Host) {
		return &FieldError{"moonpath.host", "16 lower-case hex digits", strconv.Quote(e.Host)}
	}
	if err := validNames("moonpath.protocols", e.Protocols); err != nil {
		return err
	}
	if len(e.Protocols) > MaxExtensionProtocols {
		return &FieldError{"moonpath.protocols", "at most " + strconv.Itoa(MaxExtensionProtocols) + " names",
			strconv.Itoa(len(e.Protocols))}
	}
	left := buffers
	for i, run := range e.Runs {
		if run.Count < 1 || run.Count > left || run.Mask>>len(e.Protocols) != 0 {
			return &FieldError{"moonpath.buffers[" + strconv.Itoa(i) + "]",
				"1 to " + strconv.Itoa(left) + " buffers and bits of listed protocols",
				"count " + strconv.Itoa(run.Count) + ", mask " + strconv.FormatUint(run.Mask, 2)}
		}
		left -= run.Count
	}
	if left != 0 {
		return &FieldError{"moonpath.buffers", "runs for all " + strconv.Itoa(buffers) + " buffers",
			strconv.Itoa(left) + " fewer"}
	}
	return nil
}

// validNames refuses what a reader would split, or count as missing.
func validNames(field string, names []string) error {
	if len(names) == 0 {
		return &FieldError{field, "at least one name", "none"}
	}
	for i, name := range names {
		if name == "" || strings.Contains(name, ",") || slices.Contains(names[:i], name) {
			return &FieldError{field + "[" + strconv.Itoa(i) + "]", "a name without comma that is not there yet",
				strconv.Quote(name)}
		}
	}
	return nil
}
