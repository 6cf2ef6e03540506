package moonpath_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

// Requests within the process are copied, never sent through a socket, unless the caller insists.
func TestRequestsWithinTheProcessAreCopied(t *testing.T) {
	tcpOnly := func(o *moonpath.Options) { o.Transports = []string{"tcp"} }
	for _, c := range []struct {
		name   string
		change func(*moonpath.Options)
		own    bool // to the engine's own segment
		pin    string
		path   string
	}{
		{"own segment", nil, true, "", "local"},
		{"own segment, only tcp asked for", tcpOnly, true, "", "local"},
		{"own segment, insisting on local", tcpOnly, true, "local", "local"},
		{"own segment, insisting on tcp", nil, true, "tcp", "tcp"},
		{"other engine", nil, false, "", "local"},
		{"other engine, only tcp asked for", tcpOnly, false, "", "local"},
		{"other engine, insisting on tcp", nil, false, "tcp", "tcp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := openEngine(t, c.change)
			target := e
			if !c.own {
				target = openEngine(t, c.change)
			}
			const block, count = 64 << 10, 4
			there, here := alloc(t, target, block*count), alloc(t, e, block*count)
			b := newBatch(t, e, count)
			fill(here.Bytes(), 17)
			transfer(t, b, rows(moonpath.OpWrite, pinned(t, e, c.pin), here, open(t, e, target), there, count, block)...)
			if !bytes.Equal(here.Bytes(), there.Bytes()) {
				t.Fatal("the bytes are not there")
			}

			report := b.Report()
			if len(report.Paths) != 1 || report.Paths[0].Path != c.path || report.Paths[0].Requests != count || report.Paths[0].Reason == "" {
				t.Errorf("paths %+v, want all requests over %s, with a reason", report.Paths, c.path)
			}
			for _, r := range report.Requests {
				if r.Path != c.path || r.Slices == 0 || r.State != "completed" {
					t.Errorf("request %+v, want completed over %s", r, c.path)
				}
			}
			dials := counter(t, e, "tcp", "dials")
			if c.path == "local" {
				if served := counter(t, target, "tcp", "requests_served"); dials != 0 || served != 0 {
					t.Errorf("%d connections made and %d requests served for copies", dials, served)
				}
				return
			}
			if dials == 0 {
				t.Error("no connection was made")
			}
			// What a session has served is added up when it pauses.
			eventually(t, 5*time.Second, "the target counts what it has served", func() bool {
				return counter(t, target, "tcp", "requests_served") == count && counter(t, target, "tcp", "bytes_served") == block*count
			})
		})
	}
}

func TestLocalPeerThatHasClosedIsRefused(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	there, here := alloc(t, target, 4096), alloc(t, e, 4096)
	id, b := open(t, e, target), newBatch(t, e, 1)
	r := moonpath.Request{Op: moonpath.OpWrite, Local: here.At(0), Len: 4096, Target: id, Remote: uint64(there.At(0))}
	transfer(t, b, r)
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	submit(t, b, r)
	requireFault(t, b.Wait(t.Context()), xfer.Refused)
}
