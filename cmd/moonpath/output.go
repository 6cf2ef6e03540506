package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// emit prints the result: v as one line of JSON with --json, else what text writes into aligned columns.
func (a *app) emit(v any, text func(w io.Writer)) error {
	if a.common.JSON {
		return a.written(writeJSON(a.stdout, v))
	}
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	text(w)
	return a.written(w.Flush())
}

func (a *app) written(err error) error {
	if err != nil {
		return fileError(exitFailed, "standard output", err)
	}
	return nil
}

// note tells people something beside the result; scripts that asked for JSON are spared.
func (a *app) note(format string, args ...any) {
	if !a.common.JSON {
		fmt.Fprintf(a.stderr, "moonpath: "+format+"\n", args...)
	}
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
