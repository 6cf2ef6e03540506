package handshake

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/wire/internal/vectors"
	"github.com/moonpath-io/moonpath/wire/jsoncpp"
)

const limit = 1000

func body(t testing.TB, name string) []byte {
	t.Helper()
	wire := vectors.Load(t, "testdata/vectors.md").Get(t, name)
	f, err := ctrlframe.Read(bytes.NewReader(wire), ctrlframe.DefaultLimit)
	if err != nil {
		t.Fatal(err)
	}
	return f.Body
}

func TestBodiesAreThoseOfPublishedEngines(t *testing.T) {
	for name, got := range map[string][]byte{
		"metadata-request":       AppendMetadataRequest(nil),
		"metadata-reply-none":    AppendNoDescriptor(nil),
		"notify-request":         AppendNotify(nil, Notify{Name: "a", Msg: "b"}),
		"notify-request-escaped": AppendNotify(nil, Notify{Name: "nm", Msg: "ünï"}),
		"notify-reply":           AppendNotifyReply(nil, true),
		"probe-request":          AppendProbeRequest(nil),
		"probe-reply":            AppendProbeReply(nil),
		"connection-reply":       AppendConnectionReply(nil),
	} {
		if want := body(t, name); !bytes.Equal(got, want) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestAppendKeepsWhatIsThere(t *testing.T) {
	for i, f := range []func([]byte) []byte{
		AppendMetadataRequest, AppendNoDescriptor, AppendProbeRequest, AppendProbeReply, AppendConnectionReply,
		func(dst []byte) []byte { return AppendNotify(dst, Notify{}) },
		func(dst []byte) []byte { return AppendNotifyReply(dst, false) },
	} {
		if got, want := f([]byte("x")), append([]byte("x"), f(nil)...); !bytes.Equal(got, want) {
			t.Errorf("%d: got %s, want %s", i, got, want)
		}
	}
}

func TestNotificationsAreRead(t *testing.T) {
	for text, want := range map[string]Notify{
		string(body(t, "notify-request")):         {"a", "b"},
		string(body(t, "notify-request-escaped")): {"nm", "ünï"},
		`{}`:                        {},
		`{"name":null}`:             {},
		`{"notify_msg":"m"}garbage`: {"", "m"},
		`{"name":"\ud83d\ude00\u0000","notify_msg":""}`:        {"😀\x00", ""},
		"{\"name\":\"\xff\"}":                                  {"\xff", ""},
		`{"name":["no"],"x":[1],"name":"last"}`:                {"last", ""},
		`{"Name":"no","NOTIFY_MSG":"no"}`:                      {},
		`{"name":5,"notify_msg":-7}`:                           {"5", "-7"},
		`{"name":18446744073709551615,"notify_msg":-0}`:        {"18446744073709551615", "0"},
		`{"name":0.1,"notify_msg":2.0}`:                        {"0.10000000000000001", "2.0"},
		`{"name":1e22,"notify_msg":1e2}`:                       {"1e+22", "100.0"},
		`{"name":184467440737095516160,"notify_msg":-1.5e-20}`: {"1.8446744073709552e+20", "-1.5000000000000001e-20"},
		`{"name":true,"notify_msg":false}`:                     {"true", "false"},
	} {
		if got, err := ParseNotify([]byte(text), limit); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestBadNotificationsAreNamed(t *testing.T) {
	deep := `{"name":` + strings.Repeat("[", 1100) + strings.Repeat("]", 1100) + "}"
	for text, field := range map[string]string{
		string(body(t, "kills-notify-array")):  "message",
		string(body(t, "kills-notify-number")): "message",
		`""`:                                   "message",
		`true`:                                 "message",
		`null`:                                 "message",
		`{"name":{}}`:                          "name",
		`{"name":"a","notify_msg":["b"]}`:      "notify_msg",
		`{"name":1e999}`:                       "name",
		deep:                                   "name",
	} {
		_, err := ParseNotify([]byte(text), limit)
		e, ok := errors.AsType[*FieldError](err)
		if !ok || e.Field != field || !strings.Contains(err.Error(), field) {
			t.Errorf("%.40s: got %v, want a FieldError about %s", text, err, field)
		}
	}
}

func TestLongTextIsRefused(t *testing.T) {
	for _, key := range []string{"name", "notify_msg"} {
		at := []byte(`{"` + key + `":"` + strings.Repeat("x", limit) + `"}`)
		if _, err := ParseNotify(at, limit); err != nil {
			t.Errorf("%s at the limit: %v", key, err)
		}
		_, err := ParseNotify(at, limit-1)
		if e, ok := errors.AsType[*FieldError](err); !ok || e.Field != key {
			t.Errorf("%s above the limit: got %v", key, err)
		}
	}
}

func TestEveryTruncationIsRefused(t *testing.T) {
	for _, name := range []string{"notify-request", "notify-request-escaped", "notify-reply"} {
		text := bytes.TrimSpace(body(t, name))
		for n := range text {
			_, err := ParseNotify(text[:n], limit)
			if _, ok := errors.AsType[*jsoncpp.SyntaxError](err); !ok {
				t.Errorf("%s, %d bytes: got %v, want a SyntaxError", name, n, err)
			}
			if _, err := ParseNotifyReply(text[:n], limit); err == nil {
				t.Errorf("%s, %d bytes passed for a reply", name, n)
			}
		}
	}
}

func TestReplySaysWhetherANotificationWasAccepted(t *testing.T) {
	for text, want := range map[string]bool{
		string(body(t, "notify-reply")):       true,
		`{"notify_msg":"anything"}`:           true,
		string(AppendNotifyReply(nil, false)): false,
		`{"name":"success"}`:                  false,
		"null\n":                              false,
	} {
		if got, err := ParseNotifyReply([]byte(text), limit); err != nil || got != want {
			t.Errorf("%s: got %t, %v, want %t", text, got, err, want)
		}
	}
	for _, text := range []string{"[]", "5", `{"notify_msg":[]}`} {
		if got, err := ParseNotifyReply([]byte(text), limit); err == nil || got {
			t.Errorf("%s: got %t, want an error", text, got)
		}
	}
}
