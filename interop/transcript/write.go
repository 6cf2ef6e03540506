package transcript

import (
	"bytes"
	"fmt"
	"io"
)

const firstLine = "moonpath-transcript 1"

// WriteTo writes t in the form that Parse reads. It implements io.WriterTo.
func (t *Transcript) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(t.text())
	return int64(n), err
}

func (t *Transcript) text() []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(firstLine)
	line("about %s", t.About)
	for _, n := range t.Notes {
		line("note %s", n)
	}
	line("initiator %s", t.Initiator)
	line("target %s", t.Target)
	for _, s := range t.Settings {
		line("setting %s", s)
	}
	line("")
	for _, s := range t.Strings {
		line("string %s %s", s.Name, s.Value)
	}
	for _, n := range t.Numbers {
		line("number %s %d", n.Name, n.Value)
	}
	for _, r := range t.Regions {
		line("region %s %#x %d %d", r.Name, r.Addr, r.Length, r.Seed)
	}
	if len(t.Calls) > 0 {
		line("")
	}
	for _, c := range t.Calls {
		line("call %s = %d", c.text(), c.Code)
	}
	line("")
	for _, e := range t.Events {
		line("%d %s", e.Conn, e.text())
	}
	if len(t.After) > 0 {
		line("")
	}
	for _, m := range t.After {
		line("after %s %s", m.At, m.Content)
	}
	return b.Bytes()
}

func (c Call) text() string {
	switch c.Verb {
	case Write:
		return fmt.Sprintf("%s %s %s", c.Verb, c.At, c.Payload)
	case Read:
		return fmt.Sprintf("%s %s %d", c.Verb, c.At, c.Length)
	case Notify:
		return fmt.Sprintf("%s %s %s", c.Verb, c.Name, c.Text)
	default:
		return string(c.Verb)
	}
}

var arrows = map[Role]string{Initiator: ">", Target: "<"}

func (e Event) text() string {
	switch e.Kind {
	case Opened:
		return "open " + string(e.Port)
	case Sent:
		return arrows[e.From] + " " + e.Message.String()
	case Ended:
		return arrows[e.From] + " eof"
	default:
		return arrows[e.From] + " reset"
	}
}
