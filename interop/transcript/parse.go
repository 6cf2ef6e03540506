package transcript

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxLine is beyond any line that a recorder writes: long payloads are patterns.
const maxLine = 1 << 20

// Parse reads a transcript. An error of the text is a *SyntaxError.
func Parse(r io.Reader) (*Transcript, error) {
	p := &parser{t: &Transcript{}, symbols: map[string]symbolKind{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		p.line++
		if err := p.parseLine(strings.TrimSpace(lines.Text())); err != nil {
			return nil, err
		}
	}
	if lines.Err() == bufio.ErrTooLong {
		return nil, &SyntaxError{Line: p.line + 1, Problem: fmt.Sprintf("longer than %d bytes", maxLine)}
	}
	if lines.Err() != nil {
		return nil, lines.Err()
	}
	if p.line == 0 {
		return nil, &SyntaxError{Problem: "empty, want " + firstLine}
	}
	return p.t, nil
}

type symbolKind int

const (
	stringSymbol symbolKind = iota + 1
	numberSymbol
)

type parser struct {
	t       *Transcript
	line    int
	symbols map[string]symbolKind
	ended   []map[Role]bool // per connection
}

func (p *parser) fail(format string, args ...any) error {
	return &SyntaxError{Line: p.line, Problem: fmt.Sprintf(format, args...)}
}

func (p *parser) parseLine(line string) error {
	if p.line == 1 {
		if line != firstLine {
			return p.fail("want %q", firstLine)
		}
		return nil
	}
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	t := p.t
	switch word {
	case "about":
		t.About = rest
	case "note":
		t.Notes = append(t.Notes, rest)
	case "initiator":
		t.Initiator = rest
	case "target":
		t.Target = rest
	case "setting":
		t.Settings = append(t.Settings, rest)
	case "string":
		return p.parseString(rest)
	case "number":
		return p.parseNumber(rest)
	case "region":
		return p.parseRegion(rest)
	case "call":
		return p.parseCall(rest)
	case "after":
		return p.parseAfter(rest)
	default:
		return p.parseEvent(word, rest)
	}
	return nil
}

func (p *parser) declare(name string, kind symbolKind) error {
	if !isSymbol(name) {
		return p.fail("%q is no symbol: want letters, digits and _, a letter first", name)
	}
	if p.symbols[name] != 0 {
		return p.fail("symbol %s is declared twice", name)
	}
	p.symbols[name] = kind
	return nil
}

func isSymbol(s string) bool {
	for i, c := range s {
		letter := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		digit := c >= '0' && c <= '9' || c == '_'
		if !letter && (i == 0 || !digit) {
			return false
		}
	}
	return s != ""
}

func (p *parser) parseString(rest string) error {
	name, value, _ := strings.Cut(rest, " ")
	p.t.Strings = append(p.t.Strings, String{Name: name, Value: strings.TrimSpace(value)})
	return p.declare(name, stringSymbol)
}

func (p *parser) parseNumber(rest string) error {
	fields := strings.Fields(rest)
	if len(fields) != 2 {
		return p.fail("want: number NAME VALUE")
	}
	value, err := p.uint(fields[1])
	if err != nil {
		return err
	}
	p.t.Numbers = append(p.t.Numbers, Number{Name: fields[0], Value: value})
	return p.declare(fields[0], numberSymbol)
}

func (p *parser) parseRegion(rest string) error {
	fields := strings.Fields(rest)
	if len(fields) != 4 {
		return p.fail("want: region NAME ADDRESS LENGTH SEED")
	}
	r := Region{Name: fields[0]}
	for i, to := range []*uint64{&r.Addr, &r.Length, &r.Seed} {
		value, err := p.uint(fields[i+1])
		if err != nil {
			return err
		}
		*to = value
	}
	if r.Length > maxPattern {
		return p.fail("region of %d bytes, want at most %d", r.Length, maxPattern)
	}
	p.t.Regions = append(p.t.Regions, r)
	return p.declare(r.Name, numberSymbol)
}

func (p *parser) parseCall(rest string) error {
	request, code, ok := cutLast(rest, "=")
	if !ok {
		return p.fail("want: call … = CODE")
	}
	c := Call{}
	var err error
	if c.Code, err = strconv.Atoi(code); err != nil {
		return p.fail("result %q is no number", code)
	}
	verb, args, _ := strings.Cut(request, " ")
	c.Verb = Verb(verb)
	args = strings.TrimSpace(args)
	first, second, _ := strings.Cut(args, " ")
	second = strings.TrimSpace(second)
	switch c.Verb {
	case Open, Probe:
		if args != "" {
			return p.fail("call %s takes nothing", verb)
		}
	case Write:
		if c.At, err = p.ref(first); err == nil {
			c.Payload, err = p.message(second)
		}
	case Read:
		if c.At, err = p.ref(first); err == nil {
			c.Length, err = p.uint(second)
		}
	case Notify:
		if first == "" || second == "" || strings.Contains(second, " ") {
			return p.fail("want: call notify NAME TEXT = CODE")
		}
		c.Name, c.Text = first, second
	default:
		return p.fail("call %q: want open, probe, write, read or notify", verb)
	}
	if err != nil {
		return err
	}
	p.t.Calls = append(p.t.Calls, c)
	return nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return strings.TrimSpace(s[:i]), strings.TrimSpace(s[i+len(sep):]), true
}

func (p *parser) parseAfter(rest string) error {
	place, content, _ := strings.Cut(rest, " ")
	at, err := p.ref(place)
	if err != nil {
		return err
	}
	m, err := p.message(content)
	if err != nil {
		return err
	}
	p.t.After = append(p.t.After, Memory{At: at, Content: m})
	return nil
}

func (p *parser) parseEvent(word, rest string) error {
	conn, err := strconv.Atoi(word)
	if err != nil {
		return p.fail("%q begins no line of a transcript", word)
	}
	what, rest, _ := strings.Cut(rest, " ")
	if what == "open" {
		return p.parseOpen(conn, strings.TrimSpace(rest))
	}
	if conn < 1 || conn > len(p.ended) {
		return p.fail("connection %d is not open", conn)
	}
	e := Event{Conn: conn}
	switch what {
	case arrows[Initiator]:
		e.From = Initiator
	case arrows[Target]:
		e.From = Target
	default:
		return p.fail("%q: want open, > or <", what)
	}
	ended := p.ended[conn-1]
	if ended[e.From] {
		return p.fail("the %s has ended its side of connection %d", e.From, conn)
	}
	switch rest = strings.TrimSpace(rest); rest {
	case "eof":
		e.Kind = Ended
		ended[e.From] = true
	case "reset":
		e.Kind = Reset
		ended[Initiator], ended[Target] = true, true
	default:
		e.Kind = Sent
		if e.Message, err = p.message(rest); err != nil {
			return err
		}
	}
	p.t.Events = append(p.t.Events, e)
	return nil
}

func (p *parser) parseOpen(conn int, port string) error {
	if port != string(Control) && port != string(Data) {
		return p.fail("open %q: want control or data", port)
	}
	if conn != len(p.ended)+1 {
		return p.fail("connection %d is opened, want %d next", conn, len(p.ended)+1)
	}
	p.ended = append(p.ended, map[Role]bool{})
	p.t.Events = append(p.t.Events, Event{Conn: conn, Kind: Opened, Port: Port(port)})
	return nil
}

func (p *parser) uint(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return 0, p.fail("%q is no unsigned number of 64 bits", s)
	}
	return v, nil
}
