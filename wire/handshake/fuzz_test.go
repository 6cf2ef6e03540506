package handshake

import (
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/moonpath-io/moonpath/wire/internal/vectors"
	"github.com/moonpath-io/moonpath/wire/jsoncpp"
)

// headLen is what a frame of the control port has in front of its body.
const headLen = 9

func FuzzParseNotify(f *testing.F) {
	for _, v := range vectors.Load(f, "testdata/vectors.md") {
		f.Add(v.Bytes[headLen:])
	}
	f.Add([]byte(`{"name":1e22,"notify_msg":-0.5}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := ParseNotify(text, limit)
		if err != nil {
			_, isSyntax := errors.AsType[*jsoncpp.SyntaxError](err)
			if _, isField := errors.AsType[*FieldError](err); !isSyntax && !isField {
				t.Errorf("untyped error %v", err)
			}
			return
		}
		if len(n.Name) > limit || len(n.Msg) > limit {
			t.Errorf("%d and %d bytes passed", len(n.Name), len(n.Msg))
		}
		if !utf8.ValidString(n.Name) || !utf8.ValidString(n.Msg) {
			return
		}
		if again, err := ParseNotify(AppendNotify(nil, n), limit); err != nil || again != n {
			t.Errorf("%+v came back as %+v, %v", n, again, err)
		}
	})
}
