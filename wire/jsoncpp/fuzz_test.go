package jsoncpp

import (
	"encoding/json"
	"errors"
	"testing"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"buffers":[{"addr":4096,"length":8192,"name":"a:1"}],"protocol":"tcp"}`,
		`[1,-2.5e3,"x\"\ud83d\ude00",{"b":null}]`, "/* c */ {} // d", `{"a":`, "[[[[", "\"\xff\\u0000\"", `0x1`, "null\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		v, err := Parse(src)
		if err != nil {
			e, ok := errors.AsType[*SyntaxError](err)
			if !ok || e.Offset < 0 || e.Offset > len(src) {
				t.Fatalf("bad error %v", err)
			}
			if json.Valid(src) && !hasLoneSurrogate(src) {
				t.Errorf("refused valid JSON: %v", err)
			}
			return
		}
		walk(t, v, 50)
		if again, err := Parse(v); err != nil || string(again) != string(v) {
			t.Errorf("the value %q is %q when parsed alone, %v", v, again, err)
		}
	})
}

// walk visits every value and checks that each is one by itself.
func walk(t *testing.T, v Value, depth int) {
	if depth == 0 {
		return
	}
	if v.Kind() == Absent {
		t.Fatal("an element is absent")
	}
	_, _ = v.Text()
	_, _ = v.Uint64()
	_ = v.Describe()
	for _, value := range v.Members() {
		walk(t, value, depth-1)
	}
	for value := range v.Elements() {
		walk(t, value, depth-1)
	}
}

// hasLoneSurrogate is generous: the standard library replaces what we refuse.
func hasLoneSurrogate(src []byte) bool {
	for i := 0; i+3 < len(src); i++ {
		if src[i] == '\\' && src[i+1] == 'u' && (src[i+2] == 'd' || src[i+2] == 'D') && src[i+3] >= '8' {
			return true
		}
	}
	return false
}

func FuzzAppendString(f *testing.F) {
	for _, seed := range []string{"", "ünï", "😀", "\xff\xed\xa0\x80", "\"\\\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := AppendString(nil, s)
		for _, c := range out {
			if c < ' ' || c > 0x7f {
				t.Fatalf("%q holds the byte %#x", out, c)
			}
		}
		var want string
		if err := json.Unmarshal(out, &want); err != nil {
			t.Fatal(err)
		}
		v, err := Parse(out)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := v.Text()
		if clean := string([]rune(s)); got != want || got != clean {
			t.Errorf("%q is read as %q by us, %q by the standard library, want %q", s, got, want, clean)
		}
	})
}
