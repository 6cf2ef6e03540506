package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

// pathTally adds up the reports of several batches.
type pathTally struct {
	paths       []moonpath.PathReport
	unconfirmed int // requests whose completion the peer's protocol could not confirm
}

func (t *pathTally) add(r *moonpath.Report) {
	for _, p := range r.Paths {
		t.addPath(p)
	}
	for i := range r.Requests {
		if r.Requests[i].Remote == xfer.Unconfirmed.String() {
			t.unconfirmed++
		}
	}
}

func (t *pathTally) addPath(p moonpath.PathReport) {
	for i := range t.paths {
		known := &t.paths[i]
		if known.Path == p.Path && known.Rail == p.Rail {
			known.Requests += p.Requests
			known.Bytes += p.Bytes
			known.Slices += p.Slices
			known.Failed += p.Failed
			return
		}
	}
	t.paths = append(t.paths, p)
}

// names lists the paths, as in "tcp" or "local+tcp".
func (t *pathTally) names() string {
	var names []string
	for _, p := range t.paths {
		names = append(names, pathName(p.Path, p.Rail))
	}
	return strings.Join(names, "+")
}

func pathName(path, rail string) string {
	switch {
	case path == "":
		return "no path"
	case rail == "":
		return path
	}
	return path + " " + rail
}

// rejections collects what was rejected in several batches, so that the same answer is printed once.
type rejections struct {
	texts   []string
	batches map[string][]string // names, by text
}

func (r *rejections) add(batch string, p moonpath.PathReport) {
	for _, rejected := range p.Rejected {
		text := pathName(rejected.Path, rejected.Rail) + "\t" + reasons(rejected.Reasons)
		if r.batches[text] == nil {
			r.texts = append(r.texts, text)
		}
		r.batches[text] = append(r.batches[text], batch)
	}
}

// pathTable writes one line per batch and path, and below what was rejected.
func pathTable(w io.Writer, batches []demoBatch) {
	rejected := rejections{batches: make(map[string][]string)}
	for _, b := range batches {
		var tally pathTally
		tally.add(b.Report)
		name := b.Name
		for _, p := range tally.paths {
			failed := ""
			if p.Failed > 0 {
				failed = fmt.Sprintf(", %d failed", p.Failed)
			}
			fmt.Fprintf(w, "  %s\t%s\t%s, %s, %s%s\t%s\n", name, pathName(p.Path, p.Rail),
				plural(p.Requests, "request"), sizeText(p.Bytes), plural(p.Slices, "slice"), failed, p.Reason)
			rejected.add(b.Name, p)
			name = ""
		}
	}
	for _, text := range rejected.texts {
		where := rejected.batches[text]
		in := "in " + where[0]
		if len(where) > 1 {
			in = fmt.Sprintf("in %d batches", len(where))
		}
		fmt.Fprintf(w, "  rejected %s\t%s\n", in, text)
	}
}
