package segjson

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var extension = object{
	"schema":      `1`,
	"min":         `1`,
	"incarnation": `"0123456789abcdef"`,
	"host":        `"9f86d081884c7d65"`,
	"protocols":   `["tcp","shm"]`,
	"buffers":     `[[1,3]]`,
	"tcp":         `{"hello":1}`,
}

func extensionResult() *Extension {
	return &Extension{
		Schema: 1, Min: 1, Incarnation: 0x0123456789abcdef, Host: "9f86d081884c7d65", Protocols: []string{"tcp", "shm"},
		HelloVersion: 1, Runs: []BufferRun{{1, 3}},
	}
}

// parseWith puts an extension into a good descriptor. Whatever it is, the
// classic part has to survive.
func parseWith(t *testing.T, extension string) *Descriptor {
	t.Helper()
	d, err := Parse([]byte(plain.with("moonpath", extension).String()))
	if err != nil {
		t.Fatalf("%s: %v", extension, err)
	}
	classic := *d
	classic.Moonpath, classic.ExtensionError = nil, nil
	if diff := cmp.Diff(plainResult(), &classic); diff != "" {
		t.Fatalf("%s: %s", extension, diff)
	}
	return d
}

func TestExtensionIsRead(t *testing.T) {
	for name, test := range map[string]struct {
		text   object
		change func(e *Extension)
	}{
		"as it is":       {extension, func(*Extension) {}},
		"newer schema":   {extension.with("schema", "7"), func(e *Extension) { e.Schema = 7 }},
		"unknown keys":   {extension.with("x", `[{}]`).with("tcp", `{"y":[],"hello":1}`), func(*Extension) {}},
		"no host":        {extension.with("host", ""), func(e *Extension) { e.Host = "" }},
		"null host":      {extension.with("host", "null"), func(e *Extension) { e.Host = "" }},
		"empty host":     {extension.with("host", `""`), func(e *Extension) { e.Host = "" }},
		"no tcp":         {extension.with("tcp", ""), func(e *Extension) { e.HelloVersion = 0 }},
		"no hello":       {extension.with("tcp", "{}"), func(e *Extension) { e.HelloVersion = 0 }},
		"newer hello":    {extension.with("tcp", `{"hello":9}`), func(e *Extension) { e.HelloVersion = 9 }},
		"nobody serves":  {extension.with("buffers", `[[1,0]]`), func(e *Extension) { e.Runs[0].Mask = 0 }},
		"last of two":    {extension.with("x", `1,"schema":"bad","schema":1`).with("schema", ""), func(*Extension) {}},
		"highest number": {extension.with("incarnation", `"ffffffffffffffff"`), func(e *Extension) { e.Incarnation = 1<<64 - 1 }},
	} {
		want := extensionResult()
		test.change(want)
		d := parseWith(t, test.text.String())
		if d.ExtensionError != nil {
			t.Errorf("%s: %v", name, d.ExtensionError)
		}
		if diff := cmp.Diff(want, d.Moonpath); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestMissingExtensionIsNoError(t *testing.T) {
	for _, text := range []string{"", "null"} {
		if d := parseWith(t, text); d.Moonpath != nil || d.ExtensionError != nil {
			t.Errorf("%q: got %+v, %v", text, d.Moonpath, d.ExtensionError)
		}
	}
}

func TestExtensionThatIsTooNewIsIgnoredWhateverItHolds(t *testing.T) {
	for _, text := range []string{
		extension.with("min", "2").with("schema", "2").String(),
		`{"min":2147483647,"schema":"changed","protocols":7}`,
	} {
		d := parseWith(t, text)
		if d.Moonpath != nil || !errors.Is(d.ExtensionError, ErrExtensionTooNew) {
			t.Errorf("%s: got %+v, %v, want ErrExtensionTooNew", text, d.Moonpath, d.ExtensionError)
		}
	}
}

func TestMalformedExtensionIsIgnoredWithAReason(t *testing.T) {
	many := make([]string, MaxExtensionProtocols+1)
	for i := range many {
		many[i] = fmt.Sprintf("\"p%d\"", i)
	}
	for _, test := range []struct{ key, value, field string }{
		{"schema", "", "schema"},
		{"schema", `"1"`, "schema"},
		{"schema", "0", "schema"},
		{"min", "", "min"},
		{"min", "null", "min"},
		{"min", "0", "min"},
		{"min", "1.0", "min"},
		{"min", "-1", "min"},
		{"min", "2147483648", "min"},
		{"incarnation", "", "incarnation"},
		{"incarnation", "5", "incarnation"},
		{"incarnation", `"0000000000000000"`, "incarnation"},
		{"incarnation", `"0123456789ABCDEF"`, "incarnation"},
		{"incarnation", `"0123456789abcde"`, "incarnation"},
		{"incarnation", `"0123456789abcdef0"`, "incarnation"},
		{"incarnation", `"0x23456789abcdef"`, "incarnation"},
		{"host", "5", "host"},
		{"host", `"9f86d081884c7d6"`, "host"},
		{"host", `"9f86d081884c7d6g"`, "host"},
		{"protocols", "", "protocols"},
		{"protocols", `"tcp"`, "protocols"},
		{"protocols", `[]`, "protocols"},
		{"protocols", `["tcp",""]`, "protocols[1]"},
		{"protocols", `["tcp",1]`, "protocols[1]"},
		{"protocols", `["tcp","tcp"]`, "protocols[1]"},
		{"protocols", "[" + strings.Join(many, ",") + "]", "protocols[64]"},
		{"tcp", "1", "tcp"},
		{"tcp", "[]", "tcp"},
		{"tcp", `{"hello":"1"}`, "tcp.hello"},
		{"tcp", `{"hello":-1}`, "tcp.hello"},
		{"buffers", "", "buffers"},
		{"buffers", "{}", "buffers"},
		{"buffers", "[]", "buffers"},
		{"buffers", "[[1,1],[1,1]]", "buffers[1]"},
		{"buffers", "[[2,1]]", "buffers[0]"},
		{"buffers", "[[0,1],[1,1]]", "buffers[0]"},
		{"buffers", "[[1,4]]", "buffers[0]"},
		{"buffers", "[[1]]", "buffers[0]"},
		{"buffers", "[[1,1,1]]", "buffers[0]"},
		{"buffers", "[[1,-1]]", "buffers[0]"},
		{"buffers", `[["1",1]]`, "buffers[0]"},
		{"buffers", `[{"1":1}]`, "buffers[0]"},
		{"buffers", "[1,1]", "buffers[0]"},
		{"buffers", "[[18446744073709551615,1]]", "buffers[0]"},
	} {
		d := parseWith(t, extension.with(test.key, test.value).String())
		e, ok := errors.AsType[*FieldError](d.ExtensionError)
		if !ok || e.Field != "moonpath."+test.field || d.Moonpath != nil {
			t.Errorf("%s = %s: got %+v, %v, want a FieldError about %s", test.key, test.value, d.Moonpath, d.ExtensionError, test.field)
		}
	}
	for _, text := range []string{"5", `"x"`, "[]", "true"} {
		d := parseWith(t, text)
		if e, ok := errors.AsType[*FieldError](d.ExtensionError); !ok || e.Field != "moonpath" || d.Moonpath != nil {
			t.Errorf("%s: got %+v, %v", text, d.Moonpath, d.ExtensionError)
		}
	}
}

func TestMasksReachAllProtocols(t *testing.T) {
	names := make([]string, MaxExtensionProtocols)
	for i := range names {
		names[i] = fmt.Sprintf("p%d", i)
	}
	d := plainResult()
	d.Moonpath = extensionResult()
	d.Moonpath.Protocols, d.Moonpath.Runs = names, []BufferRun{{1, 1<<64 - 1}}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	got, err := Parse(Append(nil, d))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, got); diff != "" {
		t.Error(diff)
	}
}
