package replay

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/interop/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// transcripts are the kept ones by name.
func transcripts(t *testing.T) map[string]*transcript.Transcript {
	t.Helper()
	files, err := filepath.Glob("../testdata/transcripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts (%v)", err)
	}
	kept := map[string]*transcript.Transcript{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := transcript.Parse(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		kept[strings.TrimSuffix(filepath.Base(file), ".txt")] = tr
	}
	return kept
}

// openEngine opens an engine with the settings of a recorded initiator.
func openEngine(t *testing.T, environ []string) *moonpath.Engine {
	t.Helper()
	e, err := moonpath.Open(t.Context(), moonpath.Options{Host: "127.0.0.1", Environ: append([]string{}, environ...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close of the engine: %v", err)
		}
	})
	return e
}

func alloc(t *testing.T, e *moonpath.Engine, n uint64) *moonpath.Memory {
	t.Helper()
	m, err := e.Alloc(n, moonpath.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The symbols of every kept transcript besides its region.
const (
	nameSymbol     = "NAME"
	dataPortSymbol = "DATA_PORT"
)

// metadata is the type of control frames that ask for a descriptor or hold one.
const metadata = 1

func isMetadata(frame []byte) bool { return len(frame) > 8 && frame[8] == metadata }

// classic takes out of a reply to Metadata what published engines do not know.
func classic(_, frame []byte) []byte {
	var fields map[string]json.RawMessage
	if !isMetadata(frame) || json.Unmarshal(frame[9:], &fields) != nil || fields["moonpath"] == nil {
		return frame
	}
	own := `"moonpath":` + string(fields["moonpath"]) + ","
	body := bytes.Replace(frame[8:], []byte(own), nil, 1)
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(body))), body...)
}

// anyRequest lets a request for the descriptor pass for the recorded one if it is one at all.
func anyRequest(recorded, frame []byte) []byte {
	var body any
	if isMetadata(recorded) && isMetadata(frame) && json.Unmarshal(frame[9:], &body) == nil {
		return recorded
	}
	return frame
}
