package moonpath_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath"
)

// TestReportSaysWhatBecameOfEachRequest mixes paths, sizes and failures in one batch.
func TestReportSaysWhatBecameOfEachRequest(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	there, here := alloc(t, target, 4<<20), alloc(t, e, 4<<20)
	id, tcp, rdma := open(t, e, target), pinned(t, e, "tcp"), pinned(t, e, "rdma")
	request := func(op moonpath.Op, pin moonpath.Pin, length uint64) moonpath.Request {
		return moonpath.Request{Op: op, Pin: pin, Local: here.At(0), Len: length, Target: id, Remote: uint64(there.At(0))}
	}
	refused := request(moonpath.OpRead, tcp, 64)
	refused.Remote = 64
	unknown := request(moonpath.OpRead, tcp, 64)
	unknown.Target = 99
	b := newBatch(t, e, 8)
	submit(t, b,
		request(moonpath.OpWrite, moonpath.NoPin, 100),
		request(moonpath.OpWrite, tcp, 100),
		request(moonpath.OpRead, tcp, 100),
		request(moonpath.OpWrite, tcp, 3<<20+1), // more than one slice
		refused,
		request(moonpath.OpWrite, rdma, 100),
		unknown,
		request(moonpath.OpRead, tcp, 0),
	)
	b.Wait(t.Context()) // some fail

	type row struct {
		Op, Path, State string
		Bytes           uint64
		Slices          int  // 2 stands for several
		Failed          bool // has an error
		Rejected        map[string]string
	}
	local := map[string]string{"tcp": "cost", "rdma": "installed"}
	overTCP := map[string]string{"local": "pin", "rdma": "installed"}
	none := map[string]string{"local": "pin", "tcp": "pin", "rdma": "installed"}
	want := []row{
		{"write", "local", "completed", 100, 1, false, local},
		{"write", "tcp", "completed", 100, 1, false, overTCP},
		{"read", "tcp", "completed", 100, 1, false, overTCP},
		{"write", "tcp", "completed", 3<<20 + 1, 2, false, overTCP},
		{"read", "tcp", "failed", 64, 1, true, overTCP},
		{"write", "", "failed", 100, 0, true, none},
		{"read", "", "failed", 64, 0, true, nil},
		{"read", "tcp", "completed", 0, 0, false, overTCP},
	}
	report := b.Report()
	var got []row
	slices := 0
	for i, r := range report.Requests {
		if r.Index != i || r.Remote == "" || r.Path != "" && r.Reason == "" {
			t.Errorf("request %d: %+v", i, r)
		}
		g := row{r.Op, r.Path, r.State, r.Bytes, min(r.Slices, 2), r.Error != "", nil}
		slices += r.Slices
		for _, no := range r.Rejected {
			if g.Rejected == nil {
				g.Rejected = make(map[string]string)
			}
			g.Rejected[no.Path] = no.Reasons[0].Code
		}
		got = append(got, g)
	}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}

	sums := make(map[string][3]uint64) // requests, bytes, failed
	for _, p := range report.Paths {
		s := sums[p.Path]
		sums[p.Path] = [3]uint64{s[0] + uint64(p.Requests), s[1] + p.Bytes, s[2] + uint64(p.Failed)}
		slices -= p.Slices
	}
	wantSums := map[string][3]uint64{"local": {1, 100, 0}, "tcp": {5, 200 + 3<<20 + 1, 1}, "": {1, 0, 1}}
	if !cmp.Equal(sums, wantSums) {
		t.Error(cmp.Diff(wantSums, sums))
	}
	if slices != 0 {
		t.Errorf("requests have %d slices more than paths", slices)
	}

	text, err := json.Marshal(report)
	var back moonpath.Report
	if err != nil || json.Unmarshal(text, &back) != nil || !cmp.Equal(&back, report) {
		t.Errorf("the report does not survive JSON: %v, %s", err, cmp.Diff(report, &back))
	}
}

// What a batch reports is what Explain says beforehand.
func TestExplainAndReportAgree(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	there, here := alloc(t, target, 4<<20), alloc(t, e, 4<<20)
	id, b := open(t, e, target), newBatch(t, e, 1)
	for _, pin := range []string{"", "tcp", "local"} {
		for _, length := range []uint64{1, 4096, 4 << 20} {
			p := pinned(t, e, pin)
			d, err := e.Explain(id, moonpath.OpWrite, length, p)
			if err != nil {
				t.Fatal(err)
			}
			transfer(t, b, moonpath.Request{Op: moonpath.OpWrite, Pin: p, Local: here.At(0), Len: length, Target: id, Remote: uint64(there.At(0))})
			if got, want := b.Report().Requests[0].Path, d.Rows[d.Chosen].Path; got != want {
				t.Errorf("pin %q, %d bytes: went over %s, Explain said %s", pin, length, got, want)
			}
		}
	}
}
