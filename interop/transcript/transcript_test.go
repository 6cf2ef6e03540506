package transcript

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath/interop/pattern"
)

// example has every line and every item of the format.
const example = "moonpath-transcript 1\n" + `about a write, a read and a notify
note first
note second
initiator C++ 0.3.13.post1
target raw socket server
setting MC_TCP_PROTO=1
setting MC_TCP_LANES_PER_PEER=1

string NAME 127.0.0.1:15234
number DATA_PORT 16210
region A 0x7f4e5a3b1000 65536 1

call open = 0
call probe = 0
call write A+16 68 65 6c 6c 6f = 0
call read A 5 = -1
call notify nm text = 0

` + "1 open control\n1 > rest64 01 `{}` 0a\n1 < rest64 01 `{\"name\":\"` str(NAME) `\",\"addr\":` dec(A-1) `,\"port\":` dec(DATA_PORT) any(`:)`) `}`\n" + `1 < eof
2 open data
2 > 05 00 any(de ad) u64(A+16) pattern(2,16,48)
1 > eof
2 < reset

after A+16 pattern(2,16,48) 00
`

func parse(t *testing.T, text string) *Transcript {
	t.Helper()
	tr, err := Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func exampleTranscript() *Transcript {
	return &Transcript{
		About: "a write, a read and a notify", Notes: []string{"first", "second"},
		Initiator: "C++ 0.3.13.post1", Target: "raw socket server",
		Settings: []string{"MC_TCP_PROTO=1", "MC_TCP_LANES_PER_PEER=1"},
		Strings:  []String{{"NAME", "127.0.0.1:15234"}},
		Numbers:  []Number{{"DATA_PORT", 16210}},
		Regions:  []Region{{"A", 0x7f4e5a3b1000, 65536, 1}},
		Calls: []Call{
			{Verb: Open},
			{Verb: Probe},
			{Verb: Write, At: Ref{"A", 16}, Payload: Message{Hex([]byte("hello"))}},
			{Verb: Read, At: Ref{"A", 0}, Length: 5, Code: -1},
			{Verb: Notify, Name: "nm", Text: "text"},
		},
		Events: []Event{
			{Conn: 1, Kind: Opened, Port: Control},
			{Conn: 1, Kind: Sent, From: Initiator, Message: Message{Rest64(), Hex([]byte{1}), Text("{}"), Hex([]byte{10})}},
			{Conn: 1, Kind: Sent, From: Target, Message: Message{
				Rest64(), Hex([]byte{1}), Text(`{"name":"`), Str("NAME"), Text(`","addr":`), Dec(Ref{"A", -1}),
				Text(`,"port":`), Dec(Ref{"DATA_PORT", 0}), Any([]byte(":)")), Text(`}`),
			}},
			{Conn: 1, Kind: Ended, From: Target},
			{Conn: 2, Kind: Opened, Port: Data},
			{Conn: 2, Kind: Sent, From: Initiator, Message: Message{Hex([]byte{5, 0}), Any([]byte{0xde, 0xad}), U64(Ref{"A", 16}), Pattern(2, 16, 48)}},
			{Conn: 1, Kind: Ended, From: Initiator},
			{Conn: 2, Kind: Reset, From: Target},
		},
		After: []Memory{{Ref{"A", 16}, Message{Pattern(2, 16, 48), Hex([]byte{0})}}},
	}
}

func TestParseReadsEveryLine(t *testing.T) {
	if diff := cmp.Diff(exampleTranscript(), parse(t, example), cmp.AllowUnexported(Item{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWriteIsWhatParseReads(t *testing.T) {
	var b bytes.Buffer
	n, err := exampleTranscript().WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Errorf("WriteTo = %d, %v with %d bytes written", n, err, b.Len())
	}
	if diff := cmp.Diff(example, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCommentsAndBlanksDoNotMatter(t *testing.T) {
	spaced := strings.NewReplacer(" ", "   ", "\n", "\n\n # comment\n\t").Replace(example)
	spaced = strings.Replace(spaced, "moonpath-transcript   1", "moonpath-transcript 1", 1)
	want := exampleTranscript()
	got := parse(t, spaced)
	// Free text keeps its blanks.
	got.About, got.Initiator, got.Target = want.About, want.Initiator, want.Target
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Item{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMessageBytes(t *testing.T) {
	tr := parse(t, example)
	recorded := tr.Recorded()
	other := Bindings{
		Numbers: map[string]uint64{"A": 1 << 40, "DATA_PORT": 7},
		Strings: map[string]string{"NAME": "h:1"},
	}
	payload := string(pattern.Bytes(2, 48)[16:])
	for _, c := range []struct {
		name  string
		event int
		b     Bindings
		want  string
	}{
		{"rest64", 1, recorded, "\x04\x00\x00\x00\x00\x00\x00\x00\x01{}\n"},
		{"recorded", 2, recorded, "\x41\x00\x00\x00\x00\x00\x00\x00\x01" + `{"name":"127.0.0.1:15234","addr":139974497996799,"port":16210:)}`},
		{"bound anew", 2, other, "\x2f\x00\x00\x00\x00\x00\x00\x00\x01" + `{"name":"h:1","addr":1099511627775,"port":7:)}`},
		{"address and pattern", 5, other, "\x05\x00\xde\xad" + "\x10\x00\x00\x00\x00\x01\x00\x00" + payload},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := tr.Events[c.event].Message.Bytes(c.b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTextAndAnyMayHoldBlanksAndBrackets(t *testing.T) {
	m := Message{Text(" a) (b "), Any([]byte("any(c) ")), Hex([]byte("=")), Any([]byte{0})}
	tr := &Transcript{Calls: []Call{{Verb: Write, At: Ref{Symbol: "A"}, Payload: m}}, Regions: []Region{{Name: "A"}}}
	got := parse(t, string(tr.text()))
	if diff := cmp.Diff(tr, got, cmp.AllowUnexported(Item{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLikeTakesOnlyAnyBytesFromTheOther(t *testing.T) {
	m := Message{Text("a"), Any([]byte("xy")), Rest64(), Text("b"), Any([]byte("z"))}
	const rest = "\x02\x00\x00\x00\x00\x00\x00\x00"
	for _, c := range []struct{ name, got, want string }{
		{"equal", "axy" + rest + "bz", "axy" + rest + "bz"},
		{"other any bytes", "a12" + rest + "b3", "a12" + rest + "b3"},
		{"other fixed bytes", "X12" + rest + "X3", "a12" + rest + "b3"},
		{"shorter", "a1", "a1y" + rest + "bz"},
		{"nothing", "", "axy" + rest + "bz"},
		{"longer", "a12" + rest + "b345", "a12" + rest + "b3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			like, err := m.Like([]byte(c.got), Bindings{})
			if err != nil || string(like) != c.want {
				t.Errorf("Like(%q) = %q, %v, want %q", c.got, like, err, c.want)
			}
		})
	}
}

func TestUnboundSymbolsAreNamed(t *testing.T) {
	tr := parse(t, example)
	for event, symbol := range map[int]string{2: "NAME", 5: "A"} {
		b := tr.Recorded()
		delete(b.Strings, symbol)
		delete(b.Numbers, symbol)
		var unbound *UnboundSymbol
		if _, err := tr.Events[event].Message.Bytes(b); !errors.As(err, &unbound) || unbound.Symbol != symbol {
			t.Errorf("without %s: %v", symbol, err)
		}
	}
}

func TestSyntaxErrorsSayWhere(t *testing.T) {
	for _, c := range []struct{ name, replace, by, want string }{
		{"first line", "moonpath-transcript 1", "moonpath-transcript 2", `line 1: want "moonpath-transcript 1"`},
		{"unknown word", "note first", "remark first", `line 3: "remark" begins no line`},
		{"bad symbol", "string NAME", "string 1NAME", `line 10: "1NAME" is no symbol`},
		{"symbol twice", "number DATA_PORT 16210", "number NAME 16210", "line 11: symbol NAME is declared twice"},
		{"number without value", "number DATA_PORT 16210", "number DATA_PORT", "line 11: want: number NAME VALUE"},
		{"number too large", "16210", "18446744073709551616", "line 11: \"18446744073709551616\" is no unsigned"},
		{"negative number", "16210", "-1", "line 11: \"-1\" is no unsigned"},
		{"region without seed", "65536 1", "65536", "line 12: want: region NAME ADDRESS LENGTH SEED"},
		{"region too long", "65536 1", "67108865 1", "line 12: region of 67108865 bytes"},
		{"call without result", "call open = 0", "call open", "line 14: want: call … = CODE"},
		{"call with odd result", "call open = 0", "call open = ok", `line 14: result "ok" is no number`},
		{"call with too much", "call open = 0", "call open now = 0", "line 14: call open takes nothing"},
		{"unknown call", "call open = 0", "call close = 0", `line 14: call "close"`},
		{"write to nowhere", "call write A+16", "call write B+16", `line 16: "B" was not declared`},
		{"write of nothing", "68 65 6c 6c 6f = 0", "= 0", "line 16: want at least one item"},
		{"read of no number", "call read A 5", "call read A five", `line 17: "five" is no unsigned`},
		{"notify without text", "notify nm text", "notify nm", "line 18: want: call notify NAME TEXT"},
		{"port", "open control", "open sesame", `line 20: open "sesame"`},
		{"connections out of order", "2 open data", "3 open data", "line 24: connection 3 is opened, want 2 next"},
		{"connection not open", "2 open data", "", "line 25: connection 2 is not open"},
		{"connection zero", "1 > eof", "0 > eof", "line 26: connection 0 is not open"},
		{"arrow", "1 > eof", "1 = eof", `line 26: "=": want open, > or <`},
		{"bytes after eof", "1 > eof", "1 < 00", "line 26: the target has ended its side of connection 1"},
		{"bytes after reset", "2 < reset", "2 < reset\n2 > 00", "line 28: the initiator has ended its side"},
		{"message of nothing", "rest64 01 `{}` 0a", "", "line 21: want at least one item"},
		{"text without end", "`{}`", "`{}", "line 21: text without an end"},
		{"empty text", "`{}`", "``", "line 21: text without an end, empty"},
		{"text that is not ASCII", "`{}`", "`ü`", "line 21: text without an end, empty, or with more"},
		{"any without end", "any(`:)`)", "any(`:)`", "line 22: text without an end"},
		{"any of nothing", "any(de ad)", "any()", "line 25: want any(`TEXT`) or any(HEX): any()"},
		{"any of no hex", "any(de ad)", "any(de a)", "line 25: want any(`TEXT`) or any(HEX)"},
		{"any without bracket", "any(de ad)", "any(de ad", "line 25: want any(`TEXT`) or any(HEX)"},
		{"half a byte", "05 00", "5 00", `line 25: "5" is no item`},
		{"two bytes", "05 00", "0500", `line 25: "0500" is no item`},
		{"unknown item", "u64(A+16)", "u32(A+16)", `line 25: "u32(A+16)" is no item`},
		{"item without end", "u64(A+16)", "u64(A+16", `line 25: "u64(A+16" is no item`},
		{"number of a string", "u64(A+16)", "u64(NAME)", `line 25: "NAME" was not declared as a number`},
		{"string of a number", "str(NAME)", "str(A)", `line 22: "A" was not declared as a string`},
		{"offset", "u64(A+16)", "u64(A+x)", `line 25: offset "+x"`},
		{"pattern of two", "pattern(2,16,48)", "pattern(2,16)", "line 25: want pattern(SEED,FROM,TO)"},
		{"pattern of nothing", "pattern(2,16,48)", "pattern(2,16,16)", "line 25: pattern(2,16,16): want FROM < TO"},
		{"pattern too long", "pattern(2,16,48)", "pattern(2,16,67108865)", "line 25: pattern(2,16,67108865): want FROM < TO"},
		{"memory nowhere", "after A+16", "after 16", `line 29: "16" was not declared`},
		{"memory of nothing", "after A+16 pattern(2,16,48) 00", "after A+16", "line 29: want at least one item"},
		{"line too long", "note first", "note " + strings.Repeat("x", maxLine), "line 3: longer than"},
		{"empty file", example, "", "transcript: empty, want moonpath-transcript 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(example, c.replace, c.by, 1)
			if text == example {
				t.Fatalf("%q does not occur", c.replace)
			}
			_, err := Parse(strings.NewReader(text))
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want a *SyntaxError with %q", err, c.want)
			}
		})
	}
}

func TestUnreadableInputIsItsOwnError(t *testing.T) {
	broken := errors.New("disk on fire")
	if _, err := Parse(errReader{broken}); !errors.Is(err, broken) {
		t.Errorf("error %v, want the reader's", err)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func FuzzParse(f *testing.F) {
	f.Add(example)
	for _, file := range keptFiles(f) {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		again, err := Parse(bytes.NewReader(tr.text()))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, tr.text())
		}
		if diff := cmp.Diff(tr, again, cmp.AllowUnexported(Item{})); diff != "" {
			t.Errorf("another transcript after writing and reading (-first +second):\n%s", diff)
		}
	})
}

func keptFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", "transcripts", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no kept transcripts: %v", err)
	}
	return files
}

func TestKeptTranscriptsAreCanonical(t *testing.T) {
	for _, file := range keptFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tr := parse(t, string(text))
			if diff := cmp.Diff(string(text), string(tr.text())); diff != "" {
				t.Errorf("not as WriteTo would write it (-kept +written):\n%s", diff)
			}
			for i, e := range tr.Events {
				if _, err := e.Message.Bytes(tr.Recorded()); err != nil {
					t.Errorf("event %d: %v", i, err)
				}
			}
		})
	}
}

func TestHexShowsEveryByte(t *testing.T) {
	b := []byte("a\x00\xff\xc3\xbcz") // in the middle a rune of two bytes
	if got := Hex(b).String(); got != "61 00 ff c3 bc 7a" {
		t.Errorf("Hex(% x).String() = %s", b, got)
	}
}
