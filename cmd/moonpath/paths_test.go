package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/transport"
)

func TestReportsOfSeveralBatchesAddUp(t *testing.T) {
	tcp := moonpath.PathReport{
		Path: "tcp", Requests: 2, Bytes: 10, Slices: 3, Reason: "cheapest",
		Rejected: []moonpath.Rejection{{Path: "local", Reasons: []transport.Reason{{Code: "process", Want: "1", Have: "2"}}}},
	}
	local := moonpath.PathReport{Path: "local", Requests: 1, Bytes: 4, Slices: 1, Failed: 1, Reason: "same process"}
	var tally pathTally
	tally.add(&moonpath.Report{Paths: []moonpath.PathReport{tcp, local}, Requests: []moonpath.RequestReport{{Remote: "unconfirmed"}, {Remote: "confirmed"}}})
	tally.add(&moonpath.Report{Paths: []moonpath.PathReport{tcp}, Requests: []moonpath.RequestReport{{Remote: "unconfirmed"}}})
	if tally.unconfirmed != 2 {
		t.Errorf("%d requests unconfirmed, want 2", tally.unconfirmed)
	}
	if got := tally.names(); got != "tcp+local" {
		t.Errorf("paths %q", got)
	}
	var out strings.Builder
	pathTable(&out, []demoBatch{
		{"first", &moonpath.Report{Paths: []moonpath.PathReport{tcp, local, tcp}}},
		{"second", &moonpath.Report{Paths: []moonpath.PathReport{tcp}}},
	})
	want := "  first\ttcp\t4 requests, 20 B, 6 slices\tcheapest\n" +
		"  \tlocal\t1 request, 4 B, 1 slice, 1 failed\tsame process\n" +
		"  second\ttcp\t2 requests, 10 B, 3 slices\tcheapest\n" +
		"  rejected in 2 batches\tlocal\tprocess: want 1, have 2\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
