package segjson

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/wire/internal/vectors"
)

const extensionPage = "../../docs/reference/wire-extension.md"

// bodyOf takes the frame off a vector that has one.
func bodyOf(t *testing.T, wire []byte) []byte {
	t.Helper()
	if wire[0] == '{' {
		return wire
	}
	f, err := ctrlframe.Read(bytes.NewReader(wire), ctrlframe.DefaultLimit)
	if err != nil {
		t.Fatal(err)
	}
	return f.Body
}

func oneBuffer() *Descriptor {
	return &Descriptor{
		Name: "127.0.0.1:15004", Protocols: []string{"tcp"}, TCPDataHost: "127.0.0.1", TCPDataPort: 16906,
		TCPProtoVersion: 2, Timestamp: "2026-11-30 20:03:31.249865",
		Buffers: []Buffer{{Name: "127.0.0.1:15004", Addr: 139975272349696, Length: 65536}},
	}
}

func TestRecordedDescriptorsRoundTrip(t *testing.T) {
	none := oneBuffer()
	none.Buffers, none.Timestamp = nil, "2026-11-30 20:03:31.249187"
	set := vectors.Load(t, "testdata/vectors.md")
	for name, want := range map[string]*Descriptor{
		"no-buffer":  none,
		"one-buffer": oneBuffer(),
		"two-buffers": {
			Name: "127.0.0.1:16683", Protocols: []string{"tcp"}, TCPDataHost: "127.0.0.1", TCPDataPort: 15676,
			TCPProtoVersion: 2, Timestamp: "2026-11-30 20:22:00.954577",
			Buffers: []Buffer{
				{Name: "127.0.0.1:16683", Addr: 140137227468800, Length: 4096},
				{Name: "127.0.0.1:16683", Addr: 140137227476992, Length: 8192},
			},
		},
	} {
		body := bodyOf(t, set.Get(t, name))
		got, err := Parse(body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if again := Append([]byte("x"), got); string(again) != "x"+string(body) {
			t.Errorf("%s: appended %s", name, again)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOlderFormIsRead(t *testing.T) {
	want := &Descriptor{
		Name: "10.0.0.1:15001", Protocols: []string{"tcp"}, TCPDataPort: 15002, TCPProtoVersion: 2,
		Timestamp: "2026-08-22 13:12:18.000123", Buffers: []Buffer{{Name: "10.0.0.1:15001", Addr: 4096, Length: 8192}},
	}
	got, err := Parse(bodyOf(t, vectors.Load(t, "testdata/vectors.md").Get(t, "one-buffer-old-form")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSeveralProtocolsAreRead(t *testing.T) {
	want := &Descriptor{
		Name: "h:1", Protocols: []string{"rdma", "hip"}, TCPDataPort: 15001, TCPProtoVersion: 2,
		Buffers: []Buffer{
			{Name: "cpu:0", Addr: 4096, Length: 8192, Protocol: "rdma"},
			{Name: "cpu:0", Addr: 4096, Length: 8192, Protocol: "hip"},
		},
	}
	got, err := Parse(vectors.Load(t, "testdata/vectors.md").Get(t, "several-protocols"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// documented is the example of the extension page.
func documented() *Descriptor {
	const name = "10.0.0.1:15001"
	return &Descriptor{
		Name: name, Protocols: []string{"tcp"}, TCPDataHost: "10.0.0.1", TCPDataPort: 15002, TCPProtoVersion: 2,
		Timestamp: "2026-11-30 20:03:31.249865",
		Buffers: []Buffer{
			{Name: name, Addr: 4096, Length: 8192},
			{Name: name, Addr: 65536, Length: 4096},
			{Name: name, Addr: 139975272349696, Length: 1 << 20},
		},
		Moonpath: &Extension{
			Schema: 1, Min: 1, Incarnation: 0x0123456789abcdef, Host: "9f86d081884c7d65",
			Protocols: []string{"tcp", "shm"}, HelloVersion: 1, Runs: []BufferRun{{2, 1}, {1, 3}},
		},
	}
}

func TestMoonpathObjectMatchesTheDocument(t *testing.T) {
	page := vectors.Load(t, extensionPage)
	text, frame := page.Get(t, "descriptor"), page.Get(t, "descriptor-frame")
	if body := bodyOf(t, frame); !bytes.Equal(body, text) {
		t.Errorf("the page's text and hex differ:\n%s\n%s", text, body)
	}
	if got := Append(nil, documented()); !bytes.Equal(got, text) {
		t.Errorf("appended\n%s\nthe page has\n%s", got, text)
	}
	got, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(documented(), got); diff != "" {
		t.Error(diff)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheFirstProtocolIsWrittenClassically(t *testing.T) {
	d := oneBuffer()
	d.Protocols = []string{"tcp", "shm"}
	if got, want := Append(nil, d), Append(nil, oneBuffer()); !bytes.Equal(got, want) {
		t.Errorf("got %s", got)
	}
	d.Protocols = nil // refused by Validate, but no panic
	if got := Append(nil, d); !bytes.Contains(got, []byte(`"protocol":""`)) {
		t.Errorf("got %s", got)
	}
}

func TestOptionalKeysAreLeftOut(t *testing.T) {
	d := oneBuffer()
	d.TCPDataHost = ""
	d.Buffers[0].Protocol = "tcp"
	d.Moonpath = &Extension{Schema: 1, Min: 1, Incarnation: 1, Protocols: []string{"tcp"}, Runs: []BufferRun{{1, 1}}}
	want := `{"buffers":[{"addr":139975272349696,"length":65536,"name":"127.0.0.1:15004","protocol":"tcp"}],` +
		`"moonpath":{"buffers":[[1,1]],"incarnation":"0000000000000001","min":1,"protocols":["tcp"],"schema":1},` +
		`"name":"127.0.0.1:15004","protocol":"tcp","rdma_server_name":"","tcp_data_port":16906,` +
		`"tcp_proto_version":2,"timestamp":"2026-11-30 20:03:31.249865"}` + "\n"
	got := Append(nil, d)
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	back, err := Parse(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, back); diff != "" {
		t.Error(diff)
	}
}

func TestTextAndNumbersSurviveExactly(t *testing.T) {
	d := oneBuffer()
	d.Name, d.RDMAServerName, d.TCPDataPort = "tgt one/ü😀\x00\"\\", "r\n", math.MaxUint16
	d.Buffers = []Buffer{
		{Name: "a\\n", Addr: math.MaxUint64 - 1, Length: 1},
		{Name: "a\n", Addr: 1<<53 + 1, Length: 1<<53 + 1},
		{Name: "b\n", Addr: 1, Length: math.MaxUint64 - 1},
	}
	got, err := Parse(Append(nil, d))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, got); diff != "" {
		t.Error(diff)
	}
}

func TestInvalidUTF8IsReplacedWhenWritten(t *testing.T) {
	d := oneBuffer()
	d.Name = "a\xffb"
	if got := Append(nil, d); !bytes.Contains(got, []byte(`"name":"a\ufffdb"`)) {
		t.Errorf("got %s", got)
	}
}
