package main

import (
	"bufio"
	"encoding/json"
	"io"
)

// event is one line of "go test -json"; see "go doc test2json".
type event struct {
	Action      string
	Package     string
	Test        string
	ImportPath  string // of build-output and build-fail
	FailedBuild string // of a package's fail: the ImportPath that did not build
	Output      string
	Elapsed     float64
}

// decodeEvents hands each event to use, and lines that are no event to raw, until r ends.
func decodeEvents(r io.Reader, use func(event), raw func(string)) error {
	br := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := br.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				raw(string(line))
			} else {
				use(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
