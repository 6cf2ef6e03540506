package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/selector"
	"github.com/moonpath-io/moonpath/xfer"
)

func TestAKeptRunIsBounded(t *testing.T) {
	r := &runView{}
	for i := range 1024 {
		r.Events = append(r.Events, newEventView(obs.Event{Kind: obs.Failure, Subject: strconv.Itoa(i),
			Detail: &xfer.Fault{Code: xfer.Socket, Stage: xfer.StageSend, Detail: strings.Repeat("é", textBytes)}}))
	}
	text, err := r.encode()
	if err != nil || len(text) > runBytes {
		t.Fatalf("%d bytes, %v; want at most %d", len(text), err, runBytes)
	}
	if len(r.Events) < 64 || len(r.Events)+r.Dropped != 1024 || r.Events[len(r.Events)-1].Subject != "1023" {
		t.Errorf("%d events kept, %d dropped; want the newest", len(r.Events), r.Dropped)
	}
	if n := len(r.Events[0].Fault.Detail); n > textBytes+8 {
		t.Errorf("a text of %d bytes is kept", n)
	}
}

func TestOldRunsAreRemoved(t *testing.T) {
	dir := t.TempDir() + "/runs"
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range runsKept + 5 {
		r := &runView{PID: i, Ended: at.Add(time.Duration(i) * time.Nanosecond)}
		if err := r.write(dir); err != nil {
			t.Fatal(err)
		}
	}
	names, err := runNames(dir)
	if err != nil || len(names) != runsKept || !strings.HasSuffix(names[0], "-5.json") || !strings.HasSuffix(names[runsKept-1], "-20.json") {
		t.Errorf("kept %q, %v; want the newest %d", names, err, runsKept)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others may look into the folder: %v, %v", info.Mode(), err)
	}
}

func TestEventsAreKeptInFull(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fault := &xfer.Fault{Code: xfer.Refused, Stage: xfer.StageComplete, Detail: "x"}
	described := describe(fault)
	decision := &selector.Decision{Chosen: -1}
	for _, c := range []struct {
		detail any
		want   eventView
	}{
		{fault, eventView{Fault: &described}},
		{decision, eventView{Decision: decision}},
		{"opened", eventView{Text: "opened"}},
	} {
		c.want.When, c.want.Last, c.want.Times, c.want.Kind, c.want.Subject = at, at.Add(1), 2, obs.Route, "s"
		got := newEventView(obs.Event{When: at, Last: at.Add(1), Times: 2, Kind: obs.Route, Subject: "s", Detail: c.detail})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Error(diff)
		}
	}
}
