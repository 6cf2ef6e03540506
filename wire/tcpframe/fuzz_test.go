package tcpframe

import (
	"bytes"
	"errors"
	"testing"

	"github.com/moonpath-io/moonpath/wire/internal/vectors"
)

func addSeeds(f *testing.F) {
	for _, file := range []string{"testdata/vectors.md", extensionPage} {
		for _, v := range vectors.Load(f, file) {
			f.Add(v.Bytes)
		}
	}
}

func FuzzHeader(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) < HeaderLen {
			return
		}
		h := ParseHeader(src)
		var put [HeaderLen]byte
		PutHeader(&put, h.Size, h.Addr, h.Opcode)
		if !bytes.Equal(put[:17], src[:17]) {
			t.Errorf("% x became % x", src[:17], put[:17])
		}
		hello, err := ParseHello(src)
		if err != nil {
			if _, ok := errors.AsType[*HelloError](err); !ok {
				t.Errorf("untyped error %v", err)
			}
			return
		}
		PutHello(&put, hello)
		if !bytes.Equal(put[:23], src[:23]) {
			t.Errorf("hello % x became % x", src[:23], put[:23])
		}
	})
}

func FuzzHelloAnswer(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		a, err := ParseHelloAnswer(src)
		if err != nil {
			if _, ok := errors.AsType[*HelloError](err); !ok && !errors.Is(err, ErrNotMoonpath) {
				t.Errorf("untyped error %v", err)
			}
			return
		}
		var put [HelloAnswerLen]byte
		PutHelloAnswer(&put, a)
		want := [HelloAnswerLen]byte(src[:HelloAnswerLen])
		want[17] = 0 // reserved
		if put != want {
			t.Errorf("% x became % x", want, put)
		}
	})
}
