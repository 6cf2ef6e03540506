package ctrlframe

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/moonpath-io/moonpath/wire/internal/vectors"
	"github.com/moonpath-io/moonpath/wire/jsoncpp"
)

func FuzzRead(f *testing.F) {
	for _, file := range []string{"testdata/vectors.md", "testdata/malformed.md"} {
		for _, v := range vectors.Load(f, file) {
			f.Add(v.Bytes)
		}
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		src := bytes.NewReader(wire)
		frame, err := Read(src, DefaultLimit)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok && err != io.EOF {
				t.Errorf("untyped error %v", err)
			}
			_ = err.Error()
			return
		}
		used := wire[:len(wire)-src.Len()]
		if again := Append(nil, frame); !bytes.Equal(again, used) {
			t.Errorf("% x was read, % x would be sent", used, again)
		}
		value, err := jsoncpp.Parse(frame.Body)
		if err != nil || (frame.Legacy && value.Kind() != jsoncpp.Object) {
			t.Errorf("body %q passed: %v", frame.Body, err)
		}
	})
}
