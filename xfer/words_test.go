package xfer

import (
	"fmt"
	"testing"
)

func TestStatesHaveMooncakesNumbers(t *testing.T) {
	for number, want := range []struct {
		state    State
		name     string
		terminal bool
	}{
		{Waiting, "waiting", false},
		{Pending, "pending", false},
		{Invalid, "invalid", false},
		{Canceled, "canceled", true},
		{Completed, "completed", true},
		{Timeout, "timeout", true},
		{Failed, "failed", true},
		{7, "unknown", false},
	} {
		if s := want.state; int(s) != number || s.String() != want.name || s.Terminal() != want.terminal {
			t.Errorf("state %d: %q, terminal %t; want %d, %q, %t", s, s, s.Terminal(), number, want.name, want.terminal)
		}
	}
}

func TestWordsForReports(t *testing.T) {
	if Read != 0 || Write != 1 {
		t.Errorf("read is %d and write %d, want Mooncake's 0 and 1", int(Read), int(Write))
	}
	for _, tc := range []struct {
		value fmt.Stringer
		want  string
	}{
		{Read, "read"},
		{Write, "write"},
		{HostMem, "host"},
		{MemKind(1), "unknown"},
		{Confirmed, "confirmed"},
		{Unconfirmed, "unconfirmed"},
		{Unknown, "unknown"},
	} {
		if got := tc.value.String(); got != tc.want {
			t.Errorf("%T: %q, want %q", tc.value, got, tc.want)
		}
	}
}

// Callers build these without naming every field, so what is left out must be harmless.
func TestZeroValuesAreTheCautiousOnes(t *testing.T) {
	var f Fault
	var s Status
	var r Request
	if f.Retry != Never || f.Remote != Confirmed || s.State.Terminal() || r.Pin != NoPin || r.Target != LocalSegment {
		t.Errorf("zero values: %+v, %+v, %+v", f, s, r)
	}
}
