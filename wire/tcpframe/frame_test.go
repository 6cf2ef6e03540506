package tcpframe

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath/wire/internal/vectors"
)

func TestHeadersOfPublishedEnginesRoundTrip(t *testing.T) {
	const addr = 0x7f0000001000
	set := vectors.Load(t, "testdata/vectors.md")
	for name, want := range map[string]Header{
		"v1-write": {5, addr, OpWrite},
		"v1-read":  {5, addr, OpRead},
		"v2-write": {5, addr, OpV2 | OpWrite},
		"v2-read":  {5, addr, OpV2 | OpRead},
	} {
		wire := set.Get(t, name)[:HeaderLen]
		if got := ParseHeader(wire); got != want {
			t.Errorf("%s: parsed %+v, want %+v", name, got, want)
		}
		var put [HeaderLen]byte
		PutHeader(&put, want.Size, want.Addr, want.Opcode)
		if !bytes.Equal(put[:], wire) {
			t.Errorf("%s: put % x, want % x", name, put, wire)
		}
	}
}

func TestPaddingIsIgnoredWhenReadAndZeroWhenWritten(t *testing.T) {
	frame := [HeaderLen]byte(vectors.Load(t, "testdata/vectors.md").Get(t, "v2-write-dirty-padding"))
	h := ParseHeader(frame[:])
	if want := (Header{300000, 0x1000, OpV2 | OpWrite}); h != want {
		t.Fatalf("parsed %+v, want %+v", h, want)
	}
	PutHeader(&frame, h.Size, h.Addr, h.Opcode) // into memory that has been used
	if !bytes.Equal(frame[17:], make([]byte, 7)) {
		t.Errorf("padding is % x, want zeros", frame[17:])
	}
}

func TestAnyNumberSurvivesAHeader(t *testing.T) {
	for _, want := range []Header{
		{0, 0x1000, 0x81}, {1, 0x3000, 0x81}, {2, 0x2fff, 0x81}, {1, 0xfff, 0x81}, {16, 0xfffffffffffffff8, 0x81},
		{math.MaxUint64, math.MaxUint64, 0xff}, {},
	} {
		var frame [HeaderLen]byte
		PutHeader(&frame, want.Size, want.Addr, want.Opcode)
		if got := ParseHeader(frame[:]); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// exchange is one request of a recorded conversation and its answer.
type exchange struct {
	header  Header
	payload string // of the request or the answer
	code    uint32
}

// replay walks through both directions of a recorded connection.
func replay(t *testing.T, requests, answers []byte) []exchange {
	t.Helper()
	var got []exchange
	for len(requests) > 0 {
		x := exchange{header: ParseHeader(requests)}
		requests = requests[HeaderLen:]
		if x.header.Opcode&^OpV2 == OpWrite {
			x.payload, requests = string(requests[:x.header.Size]), requests[x.header.Size:]
		}
		var ok bool
		if x.code, ok = ParseStatus(answers); !ok {
			t.Fatalf("no status frame: % x", answers[:StatusLen])
		}
		answers = answers[StatusLen:]
		if x.header.Opcode&^OpV2 == OpRead && x.code == OK {
			x.payload, answers = string(answers[:x.header.Size]), answers[x.header.Size:]
		}
		got = append(got, x)
	}
	if len(answers) > 0 {
		t.Errorf("%d bytes of answers left", len(answers))
	}
	return got
}

func TestRecordedPipelineReplays(t *testing.T) {
	const a = 0x7f743da9c000
	set := vectors.Load(t, "testdata/vectors.md")
	want := []exchange{
		{Header{2, a, OpV2 | OpWrite}, "ab", OK},
		{Header{2, a + 2, OpV2 | OpWrite}, "cd", OK},
		{Header{4, a, OpV2 | OpRead}, "abcd", OK},
	}
	got := replay(t, set.Get(t, "pipelined"), set.Get(t, "pipelined-answers"))
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(exchange{})); diff != "" {
		t.Error(diff)
	}
}

func TestRecordedRejectionReplays(t *testing.T) {
	var requests []byte
	for _, addr := range []uint64{0x1000, 0x1000, 1} {
		var frame [HeaderLen]byte
		PutHeader(&frame, 4, addr, OpV2|OpRead)
		requests = append(requests, frame[:]...)
	}
	want := []exchange{
		{Header{4, 0x1000, OpV2 | OpRead}, "pppp", OK},
		{Header{4, 0x1000, OpV2 | OpRead}, "pppp", OK},
		{Header{4, 1, OpV2 | OpRead}, "", AddressRejected},
	}
	answers := vectors.Load(t, "testdata/vectors.md").Get(t, "pipelined-rejected-answers")
	if diff := cmp.Diff(want, replay(t, requests, answers), cmp.AllowUnexported(exchange{})); diff != "" {
		t.Error(diff)
	}
}

func TestStatusFramesOfPublishedEnginesRoundTrip(t *testing.T) {
	set := vectors.Load(t, "testdata/vectors.md")
	for name, want := range map[string]uint32{
		"v2-write-ok": OK, "v2-read-answer": OK, "v2-rejected": AddressRejected,
	} {
		wire := set.Get(t, name)
		if code, ok := ParseStatus(wire); !ok || code != want {
			t.Errorf("%s: got %d, %t, want %d", name, code, ok, want)
		}
		put := bytes.Repeat([]byte{0xee}, StatusLen)
		if PutStatus(put, want); !bytes.Equal(put, wire[:StatusLen]) {
			t.Errorf("%s: put % x, want % x", name, put, wire[:StatusLen])
		}
	}
}

func TestPayloadIsNoStatusFrame(t *testing.T) {
	ok := [StatusLen]byte(vectors.Load(t, "testdata/vectors.md").Get(t, "v2-write-ok"))
	for i := 4; i < StatusLen; i++ {
		for bit := range 8 {
			bad := ok
			bad[i] ^= 1 << bit
			if _, taken := ParseStatus(bad[:]); taken {
				t.Errorf("% x passed for a status frame", bad)
			}
		}
	}
	if _, taken := ParseStatus(make([]byte, StatusLen)); taken {
		t.Error("zeros passed for a status frame")
	}
}

func TestEveryStatusCodeHasItsOwnText(t *testing.T) {
	seen := map[string]uint32{}
	for _, code := range []uint32{OK, AddressRejected, WrongIncarnation, VersionRejected, NotPermitted, BadRequest, 6, math.MaxUint32} {
		text := StatusText(code)
		if other, dup := seen[text]; dup || text == "" {
			t.Errorf("codes %d and %d share the text %q", code, other, text)
		}
		seen[text] = code
	}
	if got, want := StatusText(6), "unknown status code 6"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A short buffer is a mistake of the caller; it must not read what lies behind.
func TestShortBuffersPanic(t *testing.T) {
	backing := make([]byte, 64)
	for name, call := range map[string]func(n int){
		"ParseHeader": func(n int) { ParseHeader(backing[:n]) },
		"ParseStatus": func(n int) { ParseStatus(backing[:n]) },
		"PutStatus":   func(n int) { PutStatus(backing[:n], OK) },
		"ParseHello":  func(n int) { _, _ = ParseHello(backing[:n]) },
	} {
		full := HeaderLen
		if name == "ParseStatus" || name == "PutStatus" {
			full = StatusLen
		}
		for n := range full {
			if !panics(func() { call(n) }) {
				t.Errorf("%s took %d bytes", name, n)
			}
		}
		if panics(func() { call(full) }) {
			t.Errorf("%s did not take %d bytes", name, full)
		}
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}
