package jsoncpp

import (
	"errors"
	"strings"
	"testing"
)

func TestParseAcceptsWhatPublishedReadersAccept(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"object":                {`{"a":1}`, `{"a":1}`},
		"white space around":    {" \t\r\n[ 1 , 2 ]\n", `[ 1 , 2 ]`},
		"bytes behind":          {`{}x`, `{}`},
		"second value behind":   {`1 2`, `1`},
		"NUL behind":            {"null\x00", `null`},
		"digit behind zero":     {`01`, `0`},
		"hexadecimal at root":   {`0x10`, `0`},
		"block comment":         {`/* { */{/*"*/"a"/**/:/***/1/*}*/}`, `{/*"*/"a"/**/:/***/1/*}*/}`},
		"line comment":          {"// x\n[1,// ]\n2]//", "[1,// ]\n2]"},
		"empty containers":      {`[{},[],{"":{}}]`, `[{},[],{"":{}}]`},
		"blank containers":      {`[ { } , [ ] ]`, `[ { } , [ ] ]`},
		"raw UTF-8":             {`"ü😀"`, `"ü😀"`},
		"invalid UTF-8":         {"\"\xff\xc0\"", "\"\xff\xc0\""},
		"raw control character": {"\"a\nb\x00\"", "\"a\nb\x00\""},
		"escaped NUL":           {`"\u0000"`, `"\u0000"`},
		"all escapes":           {`"\"\\\/\b\f\n\r\t\u12aF"`, `"\"\\\/\b\f\n\r\t\u12aF"`},
		"surrogate pair":        {`"\ud83d\ude00"`, `"\ud83d\ude00"`},
		"integer beyond 64 bit": {`[184467440737095516160]`, `[184467440737095516160]`},
		"number forms":          {`[0,-0,1.5,-1e9,1E+2,2e-3,10]`, `[0,-0,1.5,-1e9,1E+2,2e-3,10]`},
		"literals":              {`[true,false,null]`, `[true,false,null]`},
	} {
		if got, err := Parse([]byte(test.in)); err != nil || string(got) != test.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, test.want)
		}
	}
}

func TestParseSaysWhereTheTextStopsBeingJSON(t *testing.T) {
	for name, test := range map[string]struct {
		in     string
		offset int
		want   string
	}{
		"nothing":                {"", 0, "a value"},
		"white space only":       {" \n", 2, "a value"},
		"byte order mark":        {"\ufeff{}", 0, "a value"},
		"word":                   {"xx", 0, "a value"},
		"NaN":                    {"[NaN]", 1, "a value"},
		"cut literal":            {"[tru]", 1, "true"},
		"cut null":               {"nul", 0, "null"},
		"wrong false":            {"fAlse", 0, "false"},
		"single quotes":          {"{'a':1}", 1, "a key in double quotes"},
		"trailing comma, object": {`{"a":1,}`, 7, "a key in double quotes"},
		"trailing comma, array":  {`[1,]`, 3, "a value"},
		"only a comma":           {`[,1]`, 1, "a value"},
		"missing comma":          {`[1 2]`, 3, "',' or ']'"},
		"missing comma, object":  {`{"a":1 "b":2}`, 7, "',' or '}'"},
		"missing colon":          {`{"a" 1}`, 5, "':'"},
		"missing value":          {`{"a":}`, 5, "a value"},
		"number as key":          {`{1:2}`, 1, "a key in double quotes"},
		"crossed brackets":       {`{"a":[1}`, 7, "',' or ']'"},
		"open object":            {`{"a":1`, 6, "',' or '}'"},
		"open array":             {`[[1],`, 5, "a value"},
		"hexadecimal":            {`[0x10]`, 2, "',' or ']'"},
		"leading zero":           {`[01]`, 2, "',' or ']'"},
		"minus alone":            {`[-]`, 2, "a digit"},
		"plus":                   {`[+1]`, 1, "a value"},
		"point without digits":   {`[1.]`, 3, "a digit"},
		"point first":            {`[.5]`, 1, "a value"},
		"exponent alone":         {`[1e+]`, 4, "a digit"},
		"open string":            {`["abc`, 1, "a string with its closing quote"},
		"backslash at the end":   {`["abc\`, 5, `\u and four hex digits`},
		"unknown escape":         {`["\x"]`, 2, "a JSON escape"},
		"short \\u":              {`["\u12"]`, 2, `\u and four hex digits`},
		"sign in \\u":            {`["\u+123"]`, 2, `\u and four hex digits`},
		"lone high surrogate":    {`["\ud83d"]`, 2, "a surrogate pair"},
		"high, then text":        {`["\ud83dabcdef"]`, 2, "a surrogate pair"},
		"high, then no low":      {`["\ud83d\u0041"]`, 2, "a surrogate pair"},
		"lone low surrogate":     {`["\ude00\ude00"]`, 2, "a surrogate pair"},
		"open comment":           {`{/* }`, 1, "a comment with its end"},
		"slash":                  {`{"a":/ 1}`, 5, "a comment with its end"},
		"comment that is none":   {`[1/]`, 2, "a comment with its end"},
		"comment of three":       {`/*/ 1`, 0, "a comment with its end"},
	} {
		_, err := Parse([]byte(test.in))
		e, ok := errors.AsType[*SyntaxError](err)
		if !ok || e.Offset != test.offset || e.Want != test.want {
			t.Errorf("%s: got %v, want %q at byte %d", name, err, test.want, test.offset)
		}
	}
}

func TestErrorsStayShortForLongTexts(t *testing.T) {
	_, err := Parse([]byte("[" + strings.Repeat("\xff", 1<<20)))
	if err == nil || len(err.Error()) > 300 {
		t.Errorf("got an error of %d bytes", len(err.Error()))
	}
}

func TestEveryTruncationIsRefused(t *testing.T) {
	const text = `{"a":[1,-2.5e3,"x\"\ud83d\ude00",{"b":null,"c":[true,false]}],/* c */"d":{}}`
	if v, err := Parse([]byte(text)); err != nil || string(v) != text {
		t.Fatalf("got %q, %v", v, err)
	}
	for n := range len(text) {
		if v, err := Parse([]byte(text[:n])); err == nil {
			t.Errorf("%d bytes passed as %q", n, v)
		}
	}
}

// Deep nesting ends published processes and overflows the stack of recursive readers.
func TestNestingHasNoLimit(t *testing.T) {
	const depth = 1 << 20
	nested := strings.Repeat("[", depth) + strings.Repeat("]", depth)
	v, err := Parse([]byte(`{"deep":` + nested + `,"objects":` +
		strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) + `,"n":7}`))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for key, value := range v.Members() {
		seen[string(key)] = len(value)
	}
	if len(seen) != 3 || seen["deep"] != 2*depth || seen["objects"] != 6*depth+1 || seen["n"] != 1 {
		t.Errorf("got members %v", seen)
	}
	if _, err := Parse([]byte(nested[:len(nested)-1])); err == nil {
		t.Error("an open bracket at the end went unnoticed")
	}
}
