package ctrlframe

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath/wire/internal/vectors"
)

// recorded maps the vectors to what they are; bodies are what follows the head.
var recorded = map[string]struct {
	kind   Type
	legacy bool
}{
	"metadata-request":           {Metadata, false},
	"metadata-reply":             {Metadata, false},
	"metadata-reply-two-buffers": {Metadata, false},
	"metadata-reply-none":        {Metadata, false},
	"notify-request":             {Notify, false},
	"notify-request-escaped":     {Notify, false},
	"notify-reply":               {Notify, false},
	"probe-request":              {Probe, false},
	"probe-reply":                {Probe, false},
	"connection-reply":           {Connection, false},
	"legacy-connection-request":  {Connection, true},
	"legacy-connection-reply":    {Connection, true},
}

func frameOf(name string, wire []byte) Frame {
	body := wire[lengthLen:]
	if !recorded[name].legacy {
		body = body[1:]
	}
	return Frame{Type: recorded[name].kind, Legacy: recorded[name].legacy, Body: body}
}

func TestRecordedFramesRoundTrip(t *testing.T) {
	set := vectors.Load(t, "testdata/vectors.md")
	if len(set) != len(recorded) {
		t.Fatalf("%d vectors, %d expectations", len(set), len(recorded))
	}
	for _, v := range set {
		want := frameOf(v.Name, v.Bytes)
		for way, src := range map[string]io.Reader{
			"at once":      bytes.NewReader(v.Bytes),
			"byte by byte": iotest.OneByteReader(bytes.NewReader(v.Bytes)),
		} {
			got, err := Read(src, DefaultLimit)
			if err != nil {
				t.Errorf("%s, %s: %v", v.Name, way, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s: %s", v.Name, way, diff)
			}
		}
		if got := Append([]byte("x"), want); !bytes.Equal(got, append([]byte("x"), v.Bytes...)) {
			t.Errorf("%s: appended % x", v.Name, got)
		}
	}
}

func TestReadTakesNothingBehindItsFrame(t *testing.T) {
	set := vectors.Load(t, "testdata/vectors.md")
	src := bytes.NewReader(append(set.Get(t, "probe-request"), set.Get(t, "notify-request")...))
	for _, want := range []Type{Probe, Notify} {
		if f, err := Read(src, DefaultLimit); err != nil || f.Type != want {
			t.Errorf("got %v, %v, want a frame of %v", f.Type, err, want)
		}
	}
}

// The first payload byte decides (wire spec, section 3.2).
func TestFirstByteDecidesBetweenTypedAndLegacy(t *testing.T) {
	const refused = Type(0xff)
	for first := range 256 {
		payload := append([]byte{byte(first)}, "{}"...)
		want, legacy := refused, false
		switch first {
		case 0, 1, 2, 3:
			want = Type(first)
		case '\t', '\n', '\r', ' ':
			want, legacy = Connection, true
		}
		f, err := Read(bytes.NewReader(Append(nil, Frame{Legacy: true, Body: payload})), DefaultLimit)
		if want == refused {
			if err == nil {
				t.Errorf("first byte %#x passed as %+v", first, f)
			}
			continue
		}
		if err != nil || f.Type != want || f.Legacy != legacy {
			t.Errorf("first byte %#x: got %+v, %v", first, f, err)
		}
	}
	legacy := Append(nil, Frame{Legacy: true, Body: []byte("/* x */{\"a\":1}")})
	if f, err := Read(bytes.NewReader(legacy), DefaultLimit); err != nil || !f.Legacy {
		t.Errorf("comment first: got %+v, %v", f, err)
	}
}

func TestTypesHaveNames(t *testing.T) {
	for kind, want := range map[Type]string{Connection: "connection", Metadata: "metadata", Notify: "notify", Probe: "probe", 9: "type 9"} {
		if got := kind.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
