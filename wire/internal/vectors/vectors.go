package vectors

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Vector is one named byte sequence.
type Vector struct {
	Name  string
	Bytes []byte
}

// Set is the content of a file, in its order. Names are unique.
type Set []Vector

// Load reads a file; it ends the test if that holds no vector or a malformed
// one.
func Load(t testing.TB, file string) Set {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	set, err := parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return set
}

// Get returns a copy of the named vector; it ends the test if there is none.
func (s Set) Get(t testing.TB, name string) []byte {
	t.Helper()
	for _, v := range s {
		if v.Name == name {
			return append([]byte(nil), v.Bytes...)
		}
	}
	t.Fatalf("no vector %q", name)
	return nil
}

func parse(text string) (Set, error) {
	var set Set
	var block *Vector
	kind := ""
	for i, line := range strings.SplitAfter(text, "\n") {
		trimmed := strings.TrimSpace(line)
		info, fence := strings.CutPrefix(trimmed, "```")
		switch {
		case fence && kind == "":
			word, name, _ := strings.Cut(info, " ")
			kind, block = "other", nil
			if name == "" || (word != "hex" && word != "json") {
				continue
			}
			for _, v := range set {
				if v.Name == name {
					return nil, fmt.Errorf("line %d: second vector %q", i+1, name)
				}
			}
			set = append(set, Vector{Name: name})
			kind, block = word, &set[len(set)-1]
		case fence:
			kind = ""
		case kind == "hex":
			digits, _, _ := strings.Cut(trimmed, "#")
			b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			block.Bytes = append(block.Bytes, b...)
		case kind == "json":
			block.Bytes = append(block.Bytes, line...)
		}
	}
	if kind != "" {
		return nil, fmt.Errorf("a block without end")
	}
	if len(set) == 0 {
		return nil, fmt.Errorf("no vector")
	}
	return set, nil
}
