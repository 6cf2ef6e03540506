package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/xfer"
)

func TestEveryErrorGivesTheNextStepOnce(t *testing.T) {
	for _, err := range []error{
		usage("", "unknown flag --x"),
		fileError(exitFailed, "f", errors.New("disk full")),
		&xfer.Fault{Code: xfer.Metadata, Stage: xfer.StageResolve, Peer: "p:1", Cause: errors.New("refused")},
		fmt.Errorf("opening: %w", &xfer.Fault{Code: xfer.Socket, Next: "start the peer"}),
		&xfer.Fault{Code: xfer.Socket, Peer: "p:1", Cause: &xfer.Fault{Code: xfer.Socket, Peer: "p:1", Cause: errors.New("refused")}},
		&config.UnknownKey{Key: "k", Nearest: "key"},
		errors.New("anything"),
	} {
		text := line(err)
		if n := strings.Count(text, "next: "); n != 1 || !strings.HasSuffix(text, ")") {
			t.Errorf("%q gives %d next steps, or not at its end", text, n)
		}
		f := describe(err)
		if f.Next == "" || f.Name == "" || f.Detail == "" || f.Side == "" || f.Remote == "" || f.Exit == exitOK {
			t.Errorf("for scripts, %q lacks something: %+v", text, f)
		}
		if strings.Contains(f.Detail, "next: ") {
			t.Errorf("for scripts, %q has the next step in its detail, too", f.Detail)
		}
	}
}

func TestFailureForScripts(t *testing.T) {
	err := fmt.Errorf("while writing: %w", &xfer.Fault{
		Code: xfer.Refused, Stage: xfer.StageComplete, Path: "tcp", Peer: "p:1", Detail: "address 0x10", Cause: syscall.ECONNRESET, Remote: xfer.Unknown, Next: "look",
	})
	want := failure{
		Exit: exitRefused, Code: int(xfer.Refused), Name: "Refused", Stage: "complete", Path: "tcp", Peer: "p:1",
		Errno: 104, Side: "peer", Remote: "unknown", Detail: "peer refused the request: address 0x10: connection reset by peer", Next: "look",
	}
	if diff := cmp.Diff(want, describe(err)); diff != "" {
		t.Error(diff)
	}
	var out bytes.Buffer
	if err := writeJSON(&out, map[string]failure{"error": want}); err != nil {
		t.Fatal(err)
	}
	const text = `{"error":{"exit":5,"code":1004,"name":"Refused","stage":"complete","path":"tcp","peer":"p:1","errno":104,"side":"peer","remote":"unknown","detail":"peer refused the request: address 0x10: connection reset by peer","next":"look"}}` + "\n"
	if diff := cmp.Diff(text, out.String()); diff != "" {
		t.Error(diff)
	}
}

// What bench says about a measurement that failed keeps what the fault had.
func TestAFailedMeasurementKeepsTheFault(t *testing.T) {
	fault := &xfer.Fault{Code: xfer.Socket, Stage: xfer.StageSend, Path: "tcp", Peer: "p:1", Side: xfer.SideNetwork, Detail: "x", Cause: syscall.ECONNRESET}
	got := describe(firstFailure([]*benchResult{{}, {err: fault, Errors: 3}}))
	want := describe(fault)
	want.Exit, want.Detail, got.Detail = exitFailed, "", ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
