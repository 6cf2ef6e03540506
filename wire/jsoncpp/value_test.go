package jsoncpp

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustParse(t testing.TB, text string) Value {
	t.Helper()
	v, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

func TestMembersComeInOrderWithTheirText(t *testing.T) {
	type member struct {
		Key, Value string
		Kind       Kind
	}
	v := mustParse(t, `{ "a" : 1 ,"\u0062\n":"x}\"]", "":{"}":"{"},/* "c":1, */"d":[[/*]]*/],//]"
{}] ,"a":null,"e":-1.5e3/**/,"f":true}`)
	want := []member{
		{"a", "1", Number},
		{"b\n", `"x}\"]"`, String},
		{"", `{"}":"{"}`, Object},
		{"d", "[[/*]]*/],//]\"\n{}]", Array},
		{"a", "null", Null},
		{"e", "-1.5e3", Number},
		{"f", "true", Bool},
	}
	var got []member
	for key, value := range v.Members() {
		got = append(got, member{string(key), string(value), value.Kind()})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestElementsComeInOrder(t *testing.T) {
	v := mustParse(t, `[ 1,"a,]" , [2,3],{"x":[4]},//,9
		null,false]`)
	want := []string{"1", `"a,]"`, "[2,3]", `{"x":[4]}`, "null", "false"}
	var got []string
	for element := range v.Elements() {
		got = append(got, string(element))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWalkingStopsWhenAsked(t *testing.T) {
	n := 0
	for range mustParse(t, `[1,2,3]`).Elements() {
		n++
		break
	}
	for range mustParse(t, `{"a":1,"b":2}`).Members() {
		n++
		break
	}
	if n != 2 {
		t.Errorf("saw %d values, want 2", n)
	}
}

func TestOtherKindsHaveNoParts(t *testing.T) {
	for _, text := range []string{`1`, `"{}"`, `null`, `true`, `{}`, `[]`, `[1]`, `{"a":1}`} {
		v := mustParse(t, text)
		members, elements := 0, 0
		for range v.Members() {
			members++
		}
		for range v.Elements() {
			elements++
		}
		if wantMembers := strings.Count(text, ":"); members != wantMembers {
			t.Errorf("%s: %d members", text, members)
		}
		if (elements == 1) != (text == `[1]`) {
			t.Errorf("%s: %d elements", text, elements)
		}
	}
	for range Value(nil).Members() {
		t.Error("an absent value has a member")
	}
	for range Value(nil).Elements() {
		t.Error("an absent value has an element")
	}
}

func TestTextDecodes(t *testing.T) {
	for text, want := range map[string]string{
		`""`:                            "",
		`"a"`:                           "a",
		`"\"\\\/\b\f\n\r\t"`:            "\"\\/\b\f\n\r\t",
		`"x\u00fcy\u0000z\ud83d\ude00"`: "xüy\x00z😀",
		`"\uDBFF\uDFFF"`:                "\U0010FFFF",
		"\"ü\xff\"":                     "ü\xff",
	} {
		if got, ok := mustParse(t, text).Text(); !ok || got != want {
			t.Errorf("%s: got %q, %t, want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{"1", "null", "[]", "{}", "true"} {
		if got, ok := mustParse(t, text).Text(); ok {
			t.Errorf("%s passed for the string %q", text, got)
		}
	}
	if _, ok := Value(nil).Text(); ok {
		t.Error("an absent value passed for a string")
	}
}

func TestWrittenTextIsReadBack(t *testing.T) {
	for _, want := range []string{"", "plain", "\x00\x1f\"\\/", "ünï€😀\U0010FFFF"} {
		v := mustParse(t, string(AppendString(nil, want)))
		if got, _ := v.Text(); got != want {
			t.Errorf("%q became %q", want, got)
		}
	}
}

func TestUint64IsExactOrRefused(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "9007199254740993": 1<<53 + 1, "18446744073709551615": math.MaxUint64,
	} {
		if got, ok := mustParse(t, text).Uint64(); !ok || got != want {
			t.Errorf("%s: got %d, %t", text, got, ok)
		}
	}
	for _, text := range []string{"-1", "-0", "1.0", "1e3", "18446744073709551616", `"1"`, "null", "true", "[1]"} {
		if got, ok := mustParse(t, text).Uint64(); ok {
			t.Errorf("%s passed for %d", text, got)
		}
	}
}

func TestDescribeNamesKindAndText(t *testing.T) {
	for text, want := range map[string]string{
		`-5`:    `a number "-5"`,
		`"x"`:   `a string "\"x\""`,
		`[1]`:   `an array "[1]"`,
		`{}`:    `an object "{}"`,
		`false`: `a boolean "false"`,
		`null`:  `null`,
	} {
		if got := mustParse(t, text).Describe(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := Value(nil).Describe(); got != "nothing" {
		t.Errorf("an absent value is %q", got)
	}
	if got := mustParse(t, `"`+strings.Repeat("x", 1<<20)+`"`).Describe(); len(got) > 100 {
		t.Errorf("a long text is described by %d bytes", len(got))
	}
}

func TestMissingIsAbsentOrNull(t *testing.T) {
	for text, want := range map[string]bool{"null": true, "0": false, `""`: false, "false": false, "[]": false, "{}": false} {
		if got := mustParse(t, text).Missing(); got != want {
			t.Errorf("%s: got %t", text, got)
		}
	}
	if !Value(nil).Missing() {
		t.Error("an absent value is not missing")
	}
}

// A value must not let its owner append into the text behind it.
func TestAppendingToAValueLeavesTheTextAlone(t *testing.T) {
	text := []byte(`[1,[2],{"a":3}]x`)
	v, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	_ = append(v, 'y')
	for element := range v.Elements() {
		_ = append(element, 'y')
		for _, member := range element.Members() {
			_ = append(member, 'y')
		}
	}
	if want := `[1,[2],{"a":3}]x`; string(text) != want {
		t.Errorf("the text became %q", text)
	}
}
