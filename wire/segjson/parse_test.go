package segjson

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath/wire/internal/vectors"
	"github.com/moonpath-io/moonpath/wire/jsoncpp"
)

// object is a descriptor whose keys are given as JSON; "" leaves a key out.
type object map[string]string

func (o object) with(key, value string) object {
	changed := object{}
	for k, v := range o {
		changed[k] = v
	}
	changed[key] = value
	return changed
}

func (o object) String() string {
	var parts []string
	for key, value := range o {
		if value != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", key, value))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

var plain = object{
	"name":              `"h:1"`,
	"protocol":          `"tcp"`,
	"tcp_data_host":     `"h"`,
	"tcp_data_port":     `7`,
	"tcp_proto_version": `2`,
	"rdma_server_name":  `""`,
	"timestamp":         `"now"`,
	"buffers":           `[{"addr":4096,"length":1,"name":"h:1"}]`,
}

func plainResult() *Descriptor {
	return &Descriptor{
		Name: "h:1", Protocols: []string{"tcp"}, TCPDataHost: "h", TCPDataPort: 7, TCPProtoVersion: 2, Timestamp: "now",
		Buffers: []Buffer{{Name: "h:1", Addr: 4096, Length: 1}},
	}
}

func TestWhatPublishedReadersAccept(t *testing.T) {
	for name, test := range map[string]struct {
		text   string
		change func(d *Descriptor)
	}{
		"as it is":           {plain.String(), func(*Descriptor) {}},
		"bytes behind":       {plain.String() + "}garbage", func(*Descriptor) {}},
		"comments":           {"/*a*/" + plain.String(), func(*Descriptor) {}},
		"no name":            {plain.with("name", "").String(), func(d *Descriptor) { d.Name = "" }},
		"null name":          {plain.with("name", "null").String(), func(d *Descriptor) { d.Name = "" }},
		"no version":         {plain.with("tcp_proto_version", "").String(), func(d *Descriptor) { d.TCPProtoVersion = 0 }},
		"null version":       {plain.with("tcp_proto_version", "null").String(), func(d *Descriptor) { d.TCPProtoVersion = 0 }},
		"version 1":          {plain.with("tcp_proto_version", "1").String(), func(d *Descriptor) { d.TCPProtoVersion = 1 }},
		"version 3":          {plain.with("tcp_proto_version", "3").String(), func(d *Descriptor) { d.TCPProtoVersion = 3 }},
		"no port":            {plain.with("tcp_data_port", "").String(), func(d *Descriptor) { d.TCPDataPort = 0 }},
		"last port":          {plain.with("tcp_data_port", "65535").String(), func(d *Descriptor) { d.TCPDataPort = 65535 }},
		"no host":            {plain.with("tcp_data_host", "").String(), func(d *Descriptor) { d.TCPDataHost = "" }},
		"number as host":     {plain.with("tcp_data_host", "5").String(), func(d *Descriptor) { d.TCPDataHost = "" }},
		"array as host":      {plain.with("tcp_data_host", `["h"]`).String(), func(d *Descriptor) { d.TCPDataHost = "" }},
		"no timestamp":       {plain.with("timestamp", "").String(), func(d *Descriptor) { d.Timestamp = "" }},
		"no rdma name":       {plain.with("rdma_server_name", "").String(), func(*Descriptor) {}},
		"rdma name":          {plain.with("rdma_server_name", `"r:2"`).String(), func(d *Descriptor) { d.RDMAServerName = "r:2" }},
		"no buffers":         {plain.with("buffers", "").String(), func(d *Descriptor) { d.Buffers = nil }},
		"null buffers":       {plain.with("buffers", "null").String(), func(d *Descriptor) { d.Buffers = nil }},
		"empty buffers":      {plain.with("buffers", "[]").String(), func(d *Descriptor) { d.Buffers = nil }},
		"unknown keys":       {plain.with("x", `{"name":"no","buffers":[1]}`).String(), func(*Descriptor) {}},
		"unknown buffer key": {plain.with("buffers", `[{"lkey":[1],"addr":4096,"shm_name":"","length":1,"name":"h:1"}]`).String(), func(*Descriptor) {}},
		"huge unknown":       {plain.with("x", `99999999999999999999999`).String(), func(*Descriptor) {}},
		"other case":         {plain.with("Name", `5`).with("BUFFERS", "5").with("Moonpath", "5").String(), func(*Descriptor) {}},
		"escaped key":        {plain.with("name", "").with("x", `1,"na\u006de":"h:1"`).String(), func(*Descriptor) {}},
		"deep unknown":       {plain.with("x", strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)).String(), func(*Descriptor) {}},
		"deep unknown in buffer": {plain.with("buffers", `[{"addr":4096,"length":1,"x":`+
			strings.Repeat(`{"a":`, 100_000)+"0"+strings.Repeat("}", 100_000)+`,"name":"h:1"}]`).String(), func(*Descriptor) {}},
	} {
		want := plainResult()
		test.change(want)
		got, err := Parse([]byte(test.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLastOfRepeatedKeysCounts(t *testing.T) {
	text := `{"name":["bad"],"name":"h:1","protocol":5,"protocol":"tcp","tcp_data_port":"x","tcp_data_port":7,` +
		`"buffers":"bad","buffers":[{"addr":-1,"length":5,"addr":4096,"length":1,"name":"","name":"h:1"}],` +
		`"tcp_data_host":"no","tcp_data_host":"h","tcp_proto_version":9,"tcp_proto_version":2,"timestamp":"now"}`
	got, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plainResult(), got); diff != "" {
		t.Error(diff)
	}
	if _, err := Parse([]byte(`{"protocol":"tcp","name":"h:1","name":["bad"]}`)); err == nil {
		t.Error("a bad last value was overlooked")
	}
}

func TestEveryFormOfProtocolIsRead(t *testing.T) {
	for text, want := range map[string][]string{
		`"tcp"`:                {"tcp"},
		`"TCP"`:                {"TCP"},
		`"foo"`:                {"foo"},
		`"rdma,tcp"`:           {"rdma", "tcp"},
		`"tcp,"`:               {"tcp"},
		`["tcp"]`:              {"tcp"},
		`["rdma","hip","tcp"]`: {"rdma", "hip", "tcp"},
	} {
		got, err := Parse([]byte(plain.with("protocol", text).String()))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got.Protocols); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestPeersWithoutDescriptorAreNotAvailable(t *testing.T) {
	none := string(bodyOf(t, vectors.Load(t, "testdata/vectors.md").Get(t, "none")))
	for _, text := range []string{
		none, "null", "[]", `[{"protocol":"tcp"}]`, `"x"`, "5", "true", "{}", `{"name":"h:1"}`,
		plain.with("protocol", "").String(), plain.with("protocol", "null").String(), plain.with("protocol", `""`).String(),
		plain.with("protocol", `","`).String(), plain.with("protocol", `[]`).String(),
	} {
		if got, err := Parse([]byte(text)); !errors.Is(err, ErrNotAvailable) {
			t.Errorf("%s: got %+v, %v, want ErrNotAvailable", text, got, err)
		}
	}
	if _, err := Parse([]byte("[5]")); !strings.Contains(err.Error(), `an array "[5]"`) {
		t.Errorf("%v does not say what the peer sent", err)
	}
}

func TestBadFieldsAreNamed(t *testing.T) {
	const good = `{"addr":4096,"length":1,"name":"h:1"}`
	for _, test := range []struct{ key, value, field string }{
		{"name", `5`, "name"},
		{"name", `["h:1"]`, "name"},
		{"protocol", `5`, "protocol"},
		{"protocol", `{"tcp":1}`, "protocol"},
		{"protocol", `["tcp",5]`, "protocol[1]"},
		{"protocol", `["tcp",""]`, "protocol[1]"},
		{"protocol", `[["tcp"]]`, "protocol[0]"},
		{"rdma_server_name", `[]`, "rdma_server_name"},
		{"timestamp", `1`, "timestamp"},
		{"tcp_data_port", `"7"`, "tcp_data_port"},
		{"tcp_data_port", `65536`, "tcp_data_port"},
		{"tcp_data_port", `70000`, "tcp_data_port"},
		{"tcp_data_port", `-1`, "tcp_data_port"},
		{"tcp_data_port", `7.0`, "tcp_data_port"},
		{"tcp_data_port", `true`, "tcp_data_port"},
		{"tcp_proto_version", `"2"`, "tcp_proto_version"},
		{"tcp_proto_version", `-2`, "tcp_proto_version"},
		{"tcp_proto_version", `2.5`, "tcp_proto_version"},
		{"tcp_proto_version", `2147483648`, "tcp_proto_version"},
		{"buffers", `"none"`, "buffers"},
		{"buffers", `{}`, "buffers"},
		{"buffers", `5`, "buffers"},
		{"buffers", `[5]`, "buffers[0]"},
		{"buffers", `[null]`, "buffers[0]"},
		{"buffers", `[` + good + `,[]]`, "buffers[1]"},
		{"buffers", `[` + good + `,{"length":1,"name":"h:1"}]`, "buffers[1].addr"},
		{"buffers", `[{"addr":null,"length":1,"name":"h:1"}]`, "buffers[0].addr"},
		{"buffers", `[{"addr":0,"length":1,"name":"h:1"}]`, "buffers[0].addr"},
		{"buffers", `[{"addr":-4096,"length":1,"name":"h:1"}]`, "buffers[0].addr"},
		{"buffers", `[{"addr":4096.5,"length":1,"name":"h:1"}]`, "buffers[0].addr"},
		{"buffers", `[{"addr":"4096","length":1,"name":"h:1"}]`, "buffers[0].addr"},
		{"buffers", `[{"addr":18446744073709551616,"length":1,"name":"h:1"}]`, "buffers[0].addr"},
		{"buffers", `[{"addr":4096,"name":"h:1"}]`, "buffers[0].length"},
		{"buffers", `[{"addr":4096,"length":0,"name":"h:1"}]`, "buffers[0].length"},
		{"buffers", `[{"addr":4096,"length":-1,"name":"h:1"}]`, "buffers[0].length"},
		{"buffers", `[{"addr":4096,"length":1e3,"name":"h:1"}]`, "buffers[0].length"},
		{"buffers", `[{"addr":18446744073709551615,"length":1,"name":"h:1"}]`, "buffers[0].length"},
		{"buffers", `[{"addr":2,"length":18446744073709551615,"name":"h:1"}]`, "buffers[0].length"},
		{"buffers", `[{"addr":4096,"length":1}]`, "buffers[0].name"},
		{"buffers", `[{"addr":4096,"length":1,"name":""}]`, "buffers[0].name"},
		{"buffers", `[{"addr":4096,"length":1,"name":5}]`, "buffers[0].name"},
		{"buffers", `[` + good + `,` + good + `,{"addr":4096,"length":1,"name":null}]`, "buffers[2].name"},
		{"buffers", `[{"addr":4096,"length":1,"name":"h:1","protocol":5}]`, "buffers[0].protocol"},
	} {
		text := plain.with(test.key, test.value).String()
		_, err := Parse([]byte(text))
		e, ok := errors.AsType[*FieldError](err)
		if !ok || e.Field != test.field {
			t.Errorf("%s = %s: got %v, want a FieldError about %s", test.key, test.value, err, test.field)
			continue
		}
		if e.Want == "" || e.Have == "" || !strings.Contains(err.Error(), test.field) {
			t.Errorf("%s = %s: the message %q is incomplete", test.key, test.value, err)
		}
	}
}

func TestBuffersWithoutAddressAreSkippedForOtherProtocols(t *testing.T) {
	buffers := `[{"name":"cxl","offset":4096,"length":8192},{"file_path":"/f","length":5,"local_path_map":{}},` +
		`{"name":"n","addr":4096,"length":1}]`
	want := []Buffer{{Name: "n", Addr: 4096, Length: 1}}
	for _, protocol := range []string{`"cxl"`, `"nvmeof"`, `["cxl","tcp"]`} {
		got, err := Parse([]byte(plain.with("protocol", protocol).with("buffers", buffers).String()))
		if err != nil {
			t.Errorf("%s: %v", protocol, err)
			continue
		}
		if diff := cmp.Diff(want, got.Buffers); diff != "" {
			t.Errorf("%s: %s", protocol, diff)
		}
	}
	for protocol, buffers := range map[string]string{
		`"tcp"`:         buffers,
		`["cxl","tcp"]`: `[{"name":"n","length":1,"protocol":"tcp"}]`,
		`"rdma"`:        `[{"name":"n","length":1,"addr":0}]`,
	} {
		_, err := Parse([]byte(plain.with("protocol", protocol).with("buffers", buffers).String()))
		if e, ok := errors.AsType[*FieldError](err); !ok || e.Field != "buffers[0].addr" {
			t.Errorf("%s with %s: got %v, want a FieldError about the address", protocol, buffers, err)
		}
	}
}

func TestNumberOfBuffersIsBounded(t *testing.T) {
	// Entries that are skipped count as well, and are the fastest to read.
	list := func(n int) []byte {
		entries := "[" + strings.TrimSuffix(strings.Repeat("{},", n), ",") + "]"
		return []byte(plain.with("protocol", `"cxl"`).with("buffers", entries).String())
	}
	if _, err := Parse(list(MaxBuffers)); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	_, err := Parse(list(MaxBuffers + 1))
	if e, ok := errors.AsType[*FieldError](err); !ok || e.Field != "buffers" {
		t.Errorf("above the bound: got %v, want a FieldError about buffers", err)
	}
}

func TestTextThatIsNotJSON(t *testing.T) {
	for _, v := range vectors.Load(t, "testdata/vectors.md") {
		if v.Name == "none" {
			continue
		}
		body := bodyOf(t, v.Bytes)
		end := strings.LastIndexByte(string(body), '}')
		for n := range end + 1 {
			_, err := Parse(body[:n])
			if _, ok := errors.AsType[*jsoncpp.SyntaxError](err); !ok {
				t.Fatalf("%s, %d bytes: got %v, want a SyntaxError", v.Name, n, err)
			}
		}
	}
	_, err := Parse([]byte("\ufeff{}"))
	if err == nil || !strings.Contains(err.Error(), "not JSON at byte 0") {
		t.Errorf("got %v", err)
	}
}

func TestResultKeepsNothingOfTheText(t *testing.T) {
	text := []byte(plain.with("name", `"abc"`).String())
	got, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	clear(text)
	want := plainResult()
	want.Name = "abc"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
