package ctrlframe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/moonpath-io/moonpath/wire/internal/vectors"
	"github.com/moonpath-io/moonpath/wire/jsoncpp"
)

func kindOf(t *testing.T, err error) Kind {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("got %v, want an Error", err)
	}
	return e.Kind
}

func TestMalformedFramesAreRefusedByKind(t *testing.T) {
	set := vectors.Load(t, "testdata/malformed.md")
	for name, want := range map[string]struct {
		kind Kind
		text string // in the message
	}{
		"bad-empty":           {Empty, "announced 0 bytes"},
		"bad-too-long":        {TooLong, "MC_HANDSHAKE_MAX_LENGTH"},
		"bad-type-4":          {UnknownType, "0x4"},
		"bad-type-ff":         {UnknownType, "0xff"},
		"bad-not-json":        {NotJSON, "byte 0"},
		"bad-http":            {TooLong, `"GET / HT"`},
		"kills-legacy-scalar": {NotObject, "must be a JSON object"},
	} {
		_, err := Read(bytes.NewReader(set.Get(t, name)), DefaultLimit)
		if got := kindOf(t, err); got != want.kind {
			t.Errorf("%s: got kind %d, want %d", name, got, want.kind)
		}
		if !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %q does not contain %q", name, err, want.text)
		}
	}
}

// What ends a C++ process with a type byte in front is a good frame: its JSON
// is valid, and package handshake judges the rest.
func TestFramesThatKillPublishedEnginesAreRead(t *testing.T) {
	set := vectors.Load(t, "testdata/malformed.md")
	for _, name := range []string{"kills-notify-array", "kills-notify-number", "kills-connection-array"} {
		if _, err := Read(bytes.NewReader(set.Get(t, name)), DefaultLimit); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	nested := []byte(`{"a":` + strings.Repeat("[", 1100) + strings.Repeat("]", 1100) + "}")
	for _, f := range []Frame{{Type: Connection}, {Type: Metadata}, {Type: Notify}, {Type: Probe}, {Legacy: true}} {
		f.Body = nested
		if got, err := Read(bytes.NewReader(Append(nil, f)), DefaultLimit); err != nil || !bytes.Equal(got.Body, nested) {
			t.Errorf("%v, legacy %t: %v", f.Type, f.Legacy, err)
		}
	}
}

func TestBodiesOfTheWrongKind(t *testing.T) {
	for name, test := range map[string]struct {
		payload string
		kind    Kind
	}{
		"type byte alone":      {"\x01", NotJSON},
		"type and blank":       {"\x02 \n", NotJSON},
		"cut object":           {"\x03{", NotJSON},
		"legacy cut object":    {`{"a":`, NotJSON},
		"legacy array":         {"[1]", NotObject},
		"legacy string":        {`"x"`, NotObject},
		"legacy null":          {"null", NotObject},
		"legacy number":        {"-1", NotObject},
		"legacy blank":         {" ", NotJSON},
		"legacy byte order":    {"\ufeff{}", UnknownType},
		"control byte":         {"\x05{}", UnknownType},
		"form feed":            {"\x0c{}", UnknownType},
		"DEL":                  {"\x7f{}", UnknownType},
		"unknown type, absurd": {"\x80", UnknownType},
	} {
		wire := Append(nil, Frame{Legacy: true, Body: []byte(test.payload)})
		_, err := Read(bytes.NewReader(wire), DefaultLimit)
		if got := kindOf(t, err); got != test.kind {
			t.Errorf("%s: got kind %d (%v), want %d", name, got, err, test.kind)
		}
	}
}

func TestSyntaxErrorIsFound(t *testing.T) {
	wire := Append(nil, Frame{Type: Metadata, Body: []byte(`{"a" 1}`)})
	_, err := Read(bytes.NewReader(wire), DefaultLimit)
	if e, ok := errors.AsType[*jsoncpp.SyntaxError](err); !ok || e.Offset != 5 {
		t.Errorf("got %v, want a SyntaxError at byte 5", err)
	}
}

func TestEveryTruncationIsRefused(t *testing.T) {
	for _, v := range vectors.Load(t, "testdata/vectors.md") {
		for n := range v.Bytes {
			_, err := Read(bytes.NewReader(v.Bytes[:n]), DefaultLimit)
			if n == 0 {
				if err != io.EOF { // as it is: nobody said anything
					t.Errorf("%s: nothing: got %v, want io.EOF", v.Name, err)
				}
				continue
			}
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Kind != Truncated || !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%s: %d bytes: got %v, want Truncated", v.Name, n, err)
			}
			got, length := uint64(n), uint64(lengthLen)
			if n >= lengthLen {
				got, length = uint64(n-lengthLen), uint64(len(v.Bytes)-lengthLen)
			}
			if e.Got != got || e.Length != length {
				t.Errorf("%s: %d bytes: error says %d of %d, want %d of %d", v.Name, n, e.Got, e.Length, got, length)
			}
		}
	}
}

func TestDeadlineOfTheConnectionIsFound(t *testing.T) {
	for name, src := range map[string]io.Reader{
		"in the length":    iotest.ErrReader(os.ErrDeadlineExceeded),
		"in the payload":   io.MultiReader(bytes.NewReader([]byte{9, 0, 0, 0, 0, 0, 0, 0}), iotest.ErrReader(os.ErrDeadlineExceeded)),
		"after some of it": io.MultiReader(bytes.NewReader([]byte{9, 0, 0, 0, 0, 0, 0, 0, 1}), iotest.ErrReader(os.ErrDeadlineExceeded)),
	} {
		_, err := Read(src, DefaultLimit)
		if !errors.Is(err, os.ErrDeadlineExceeded) || kindOf(t, err) != Truncated {
			t.Errorf("%s: got %v, want the deadline", name, err)
		}
	}
}

func TestLimitIsInclusive(t *testing.T) {
	body := []byte(`"` + strings.Repeat("x", 97) + `"`) // 99 bytes, 100 with the type
	wire := Append(nil, Frame{Type: Metadata, Body: body})
	if _, err := Read(bytes.NewReader(wire), 100); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	_, err := Read(bytes.NewReader(wire), 99)
	if kindOf(t, err) != TooLong {
		t.Errorf("above the limit: %v", err)
	}
	if _, err := Read(bytes.NewReader(wire), 0); kindOf(t, err) != TooLong {
		t.Errorf("limit 0: %v", err)
	}
}

func TestNoLimitIsAboveMaxLimit(t *testing.T) {
	for _, n := range []uint64{MaxLimit + 1, 1 << 40, 1 << 63, 1<<64 - 1} {
		_, err := Read(bytes.NewReader(binary.LittleEndian.AppendUint64(nil, n)), 1<<64-1)
		if e, ok := errors.AsType[*Error](err); !ok || e.Kind != TooLong || e.Length != n || e.Limit != MaxLimit {
			t.Errorf("length %d: got %v", n, err)
		}
	}
}

// The memory for a body has to follow its bytes, not its announcement.
func TestLyingLengthCostsLittleMemory(t *testing.T) {
	head := binary.LittleEndian.AppendUint64(nil, MaxLimit)
	sent := append(head, bytes.Repeat([]byte{'x'}, 200<<10)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Read(bytes.NewReader(sent), MaxLimit)
	runtime.ReadMemStats(&after)
	if kindOf(t, err) != Truncated {
		t.Fatal(err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 2<<20 {
		t.Errorf("%d bytes were allocated for 200 KiB that arrived", used)
	}
}

func TestLongBodyArrivesWhole(t *testing.T) {
	body := []byte(`"` + strings.Repeat("0123456789", 300_000) + `"`)
	wire := Append(nil, Frame{Type: Metadata, Body: body})
	f, err := Read(iotest.HalfReader(bytes.NewReader(wire)), MaxLimit)
	if err != nil || !bytes.Equal(f.Body, body) {
		t.Errorf("got %d bytes, %v, want %d", len(f.Body), err, len(body))
	}
}
