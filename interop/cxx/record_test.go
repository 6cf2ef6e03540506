package cxx

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath/interop/transcript"
)

var record = flag.Bool("record", false, "write interop/testdata/transcripts anew instead of comparing with it")

const keptFolder = "../testdata/transcripts"

const publishedEngine = "C++ mooncake-transfer-engine-non-cuda 0.3.13.post1"

// TestRecordTranscripts records every scenario and compares it with the kept transcript, so that what is kept stays what
// the published engine does. With -record it writes the kept ones.
func TestRecordTranscripts(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.file, func(t *testing.T) {
			tr := sc.record(t)
			file := filepath.Join(keptFolder, sc.file+".txt")
			if *record {
				write(t, file, tr)
			}
			kept := read(t, file)
			if diff := cmp.Diff(facts(kept), facts(tr)); diff != "" {
				t.Errorf("facts differ (-kept +recorded):\n%s", diff)
			}
			compareStreams(t, kept, tr)
			compareMemory(t, kept, tr)
		})
	}
}

func (sc scenario) record(t *testing.T) *transcript.Transcript {
	s := newSession(t, sc.settings, sc.raw)
	sc.run(s)
	tr := s.finish()
	tr.About, tr.Notes, tr.Settings = sc.about, sc.notes, sc.settings
	tr.Initiator, tr.Target = publishedEngine, publishedEngine
	if sc.raw {
		tr.Initiator = "raw socket client"
	}
	return tr
}

func write(t *testing.T, file string, tr *transcript.Transcript) {
	t.Helper()
	var text bytes.Buffer
	if _, err := tr.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) *transcript.Transcript {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	tr, err := transcript.Parse(f)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return tr
}

// facts is all that is the same in every run, as text.
func facts(t *transcript.Transcript) []string {
	lines := append([]string{t.About, t.Initiator, t.Target}, t.Notes...)
	lines = append(lines, t.Settings...)
	for _, c := range t.Calls {
		lines = append(lines, fmt.Sprint(c))
	}
	return lines
}

// stream is all that one side did on one connection. The order of what the two sides did is a matter of timing, and so is
// the difference between eof and reset.
type stream struct {
	port  transcript.Port
	bytes transcript.Message
	ended bool
}

func streams(t *transcript.Transcript) map[string]*stream {
	out := map[string]*stream{}
	key := func(conn int, r transcript.Role) string { return fmt.Sprintf("%s of connection %d", r, conn) }
	for _, e := range t.Events {
		switch e.Kind {
		case transcript.Opened:
			out[key(e.Conn, transcript.Initiator)] = &stream{port: e.Port}
			out[key(e.Conn, transcript.Target)] = &stream{port: e.Port}
		case transcript.Sent:
			s := out[key(e.Conn, e.From)]
			s.bytes = append(s.bytes, e.Message...)
		case transcript.Ended:
			out[key(e.Conn, e.From)].ended = true
		case transcript.Reset:
			out[key(e.Conn, transcript.Initiator)].ended = true
			out[key(e.Conn, transcript.Target)].ended = true
		}
	}
	return out
}

// compareStreams compares what was sent, with the symbols of the kept transcript bound to the values of the recorded one.
func compareStreams(t *testing.T, kept, recorded *transcript.Transcript) {
	t.Helper()
	want, got := streams(kept), streams(recorded)
	for key := range got {
		if _, ok := want[key]; !ok {
			t.Errorf("%s: recorded, not kept", key)
		}
	}
	for key, w := range want {
		g, ok := got[key]
		if !ok || g.port != w.port || g.ended != w.ended {
			t.Errorf("%s: recorded %+v, kept %+v", key, g, w)
			continue
		}
		compareMessages(t, key, w.bytes, g.bytes, recorded.Recorded())
	}
}

func compareMemory(t *testing.T, kept, recorded *transcript.Transcript) {
	t.Helper()
	if len(kept.After) != len(recorded.After) {
		t.Fatalf("memory: recorded %v, kept %v", recorded.After, kept.After)
	}
	for i, w := range kept.After {
		g := recorded.After[i]
		if w.At != g.At {
			t.Errorf("memory at %v, kept %v", g.At, w.At)
		}
		compareMessages(t, "memory at "+w.At.String(), w.Content, g.Content, recorded.Recorded())
	}
}

func compareMessages(t *testing.T, what string, kept, recorded transcript.Message, b transcript.Bindings) {
	t.Helper()
	got, err := recorded.Bytes(b)
	if err != nil {
		t.Fatal(err)
	}
	want, err := kept.Like(got, b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs:\nkept     %v\nrecorded %v", what, kept, recorded)
	}
}
