package jsoncpp

import "testing"

func TestAppendStringEscapes(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"empty":              {"", `""`},
		"plain":              {"127.0.0.1:15004", `"127.0.0.1:15004"`},
		"printable":          {" !/[]~\x7f", "\" !/[]~\x7f\""},
		"quote, backslash":   {`"\`, `"\"\\"`},
		"short escapes":      {"\b\f\n\r\t", `"\b\f\n\r\t"`},
		"other controls":     {"\x00\x1f\x0b", `"\u0000\u001f\u000b"`},
		"two bytes":          {"ünï", `"\u00fcn\u00ef"`},
		"three bytes":        {"€\uFFFF", `"\u20ac\uffff"`},
		"four bytes":         {"😀", `"\ud83d\ude00"`},
		"last code point":    {"\U0010FFFF", `"\udbff\udfff"`},
		"first of four":      {"\U00010000", `"\ud800\udc00"`},
		"stray continuation": {"a\x80b", `"a\ufffdb"`},
		"cut sequence":       {"a\xe2\x82", `"a\ufffd\ufffd"`},
		"overlong":           {"\xc0\xaf", `"\ufffd\ufffd"`},
		"surrogate in UTF-8": {"\xed\xa0\x80", `"\ufffd\ufffd\ufffd"`},
		"escape at the ends": {"\"x\"", `"\"x\""`},
	} {
		if got := string(AppendString([]byte("p"), test.in)); got != "p"+test.want {
			t.Errorf("%s: got %s, want p%s", name, got, test.want)
		}
	}
}
