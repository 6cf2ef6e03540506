package segjson

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath/wire/internal/vectors"
	"github.com/moonpath-io/moonpath/wire/jsoncpp"
)

func FuzzParse(f *testing.F) {
	for _, file := range []string{"testdata/vectors.md", extensionPage} {
		for _, v := range vectors.Load(f, file) {
			body := v.Bytes
			if i := bytes.IndexByte(body, '{'); i >= 0 { // behind the frame's head
				body = body[i:]
			}
			f.Add(body)
		}
	}
	f.Add([]byte(plain.with("moonpath", extension.String()).String()))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse(text)
		if err != nil {
			_, isSyntax := errors.AsType[*jsoncpp.SyntaxError](err)
			_, isField := errors.AsType[*FieldError](err)
			if !isSyntax && !isField && !errors.Is(err, ErrNotAvailable) {
				t.Errorf("untyped error %v", err)
			}
			return
		}
		if d.Moonpath != nil && d.ExtensionError != nil {
			t.Error("an extension and a reason to have none")
		}
		for _, b := range d.Buffers {
			if b.Addr == 0 || b.Length == 0 || b.Addr+b.Length < b.Addr || b.Name == "" {
				t.Errorf("bad buffer %+v passed", b)
			}
		}
		// What can be published comes back as it is, up to text that is not UTF-8.
		if d.Validate() != nil || len(d.Protocols) > 1 || d.ExtensionError != nil {
			return
		}
		once := Append(nil, d)
		again, err := Parse(once)
		if err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		twice := Append(nil, again)
		if !bytes.Equal(once, twice) {
			t.Errorf("%s became %s", once, twice)
		}
		if diff := cmp.Diff(d.Buffers, again.Buffers); diff != "" && bytes.IndexFunc(text, isNotASCII) < 0 {
			t.Error(diff)
		}
	})
}

func isNotASCII(r rune) bool { return r > 0x7f }
