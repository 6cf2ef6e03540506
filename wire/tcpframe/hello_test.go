package tcpframe

import (
	"bytes"
	"errors"
	"testing"

	"github.com/moonpath-io/moonpath/wire/internal/vectors"
)

const extensionPage = "../../docs/reference/wire-extension.md"

const incarnation = 0x0123456789abcdef

func TestHelloMatchesTheDocument(t *testing.T) {
	page := vectors.Load(t, extensionPage)
	for name, want := range map[string]Hello{
		"hello":         {incarnation, 1, 1, FeatureDrain},
		"hello-too-new": {incarnation, 9, 7, 0},
	} {
		wire := page.Get(t, name)
		if got, err := ParseHello(wire); err != nil || got != want {
			t.Errorf("%s: parsed %+v, %v, want %+v", name, got, err, want)
		}
		put := [HeaderLen]byte(bytes.Repeat([]byte{0xee}, HeaderLen))
		if PutHello(&put, want); !bytes.Equal(put[:], wire) {
			t.Errorf("%s: put % x, want % x", name, put, wire)
		}
	}
}

func TestHelloAnswersMatchTheDocument(t *testing.T) {
	page := vectors.Load(t, extensionPage)
	for name, want := range map[string]HelloAnswer{
		"answer-ok":                {OK, incarnation, HelloVersion, FeatureDrain, 1 << 20},
		"answer-wrong-incarnation": {Code: WrongIncarnation, Incarnation: 0xfedcba9876543210},
		"answer-version-rejected":  {Code: VersionRejected, Incarnation: incarnation},
	} {
		wire := page.Get(t, name)
		if got, err := ParseHelloAnswer(wire); err != nil || got != want {
			t.Errorf("%s: parsed %+v, %v, want %+v", name, got, err, want)
		}
		put := [HelloAnswerLen]byte(bytes.Repeat([]byte{0xee}, HelloAnswerLen))
		if PutHelloAnswer(&put, want); !bytes.Equal(put[:], wire) {
			t.Errorf("%s: put % x, want % x", name, put, wire)
		}
	}
}

func TestRejectionsMatchTheDocument(t *testing.T) {
	page := vectors.Load(t, extensionPage)
	for name, want := range map[string]uint32{"status-not-permitted": NotPermitted, "status-bad-request": BadRequest} {
		wire := page.Get(t, name)
		put := make([]byte, StatusLen)
		if PutStatus(put, want); !bytes.Equal(put, wire) {
			t.Errorf("%s: put % x, want % x", name, put, wire)
		}
	}
}

// To a published server, hello has to be a version 2 request that moves nothing.
func TestHelloIsAHarmlessRequest(t *testing.T) {
	var frame [HeaderLen]byte
	PutHello(&frame, Hello{incarnation, 1, 1, FeatureDrain})
	h := ParseHeader(frame[:])
	if h.Size != 0 || h.Opcode&OpV2 == 0 || h.Opcode&^OpV2 == OpWrite {
		t.Errorf("got %+v, want size 0, version 2, and no write", h)
	}
}

func TestMalformedHelloIsNamed(t *testing.T) {
	var good [HeaderLen]byte
	PutHello(&good, Hello{incarnation, 3, 2, 0xffff})
	for name, test := range map[string]struct {
		spoil func(b *[HeaderLen]byte)
		part  string
	}{
		"read":           {func(b *[HeaderLen]byte) { b[16] = OpV2 | OpRead }, "opcode"},
		"size":           {func(b *[HeaderLen]byte) { b[7] = 1 }, "size"},
		"first letter":   {func(b *[HeaderLen]byte) { b[17] = 'm' }, "magic"},
		"second letter":  {func(b *[HeaderLen]byte) { b[18] = 0 }, "magic"},
		"no incarnation": {func(b *[HeaderLen]byte) { clear(b[8:16]) }, "incarnation"},
		"max below min":  {func(b *[HeaderLen]byte) { b[19] = 1 }, "versions"},
		"min 0":          {func(b *[HeaderLen]byte) { b[20] = 0 }, "versions"},
	} {
		bad := good
		test.spoil(&bad)
		_, err := ParseHello(bad[:])
		if e, ok := errors.AsType[*HelloError](err); !ok || e.Part != test.part {
			t.Errorf("%s: got %v, want a HelloError about %s", name, err, test.part)
		}
	}
	good[23] = 0xff // reserved
	if _, err := ParseHello(good[:]); err != nil {
		t.Errorf("reserved byte: %v", err)
	}
}

func TestServerThatDoesNotKnowHelloIsRecognised(t *testing.T) {
	rejected := vectors.Load(t, "testdata/vectors.md").Get(t, "v2-rejected")
	if _, err := ParseHelloAnswer(rejected); !errors.Is(err, ErrNotMoonpath) {
		t.Errorf("got %v, want ErrNotMoonpath", err)
	}
}

func TestAnswerIsRefusedAtEveryTruncation(t *testing.T) {
	wire := vectors.Load(t, extensionPage).Get(t, "answer-ok")
	for n := range wire {
		_, err := ParseHelloAnswer(wire[:n])
		if e, ok := errors.AsType[*HelloError](err); !ok || e.Part != "length" {
			t.Errorf("%d bytes: got %v, want a HelloError about the length", n, err)
		}
	}
}

func TestMalformedAnswerIsNamed(t *testing.T) {
	good := [HelloAnswerLen]byte(vectors.Load(t, extensionPage).Get(t, "answer-ok"))
	for name, test := range map[string]struct {
		spoil func(b *[HelloAnswerLen]byte)
		part  string
	}{
		"payload of a v1 server": {func(b *[HelloAnswerLen]byte) { clear(b[:8]) }, "status frame"},
		"code of a request":      {func(b *[HelloAnswerLen]byte) { b[0] = byte(BadRequest) }, "status code"},
		"unknown code":           {func(b *[HelloAnswerLen]byte) { b[3] = 1 }, "status code"},
		"no incarnation":         {func(b *[HelloAnswerLen]byte) { clear(b[8:16]) }, "incarnation"},
		"no version":             {func(b *[HelloAnswerLen]byte) { b[16] = 0 }, "version"},
	} {
		bad := good
		test.spoil(&bad)
		_, err := ParseHelloAnswer(bad[:])
		if e, ok := errors.AsType[*HelloError](err); !ok || e.Part != test.part {
			t.Errorf("%s: got %v, want a HelloError about the %s", name, err, test.part)
		}
	}
}

func TestNewestCommonVersionIsChosen(t *testing.T) {
	for _, test := range []struct {
		clientMin, clientMax, serverMin, serverMax, version uint8
		ok                                                  bool
	}{
		{1, 1, 1, 1, 1, true},
		{1, 5, 1, 3, 3, true},
		{1, 3, 2, 5, 3, true},
		{3, 5, 1, 3, 3, true},
		{1, 255, 255, 255, 255, true},
		{4, 5, 1, 3, 0, false},
		{1, 2, 3, 4, 0, false},
	} {
		version, ok := Hello{MinVersion: test.clientMin, MaxVersion: test.clientMax}.Choose(test.serverMin, test.serverMax)
		if ok != test.ok || (ok && version != test.version) {
			t.Errorf("%+v: got %d, %t", test, version, ok)
		}
	}
}
