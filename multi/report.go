package multi

import (
	"fmt"
	"slices"

	"github.com/moonpath-io/moonpath/selector"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// Report says how a batch went: the path of every request, why it was taken, and what was rejected.
type Report struct {
	Requests []RequestReport `json:"requests"`
	Paths    []PathReport    `json:"paths"` // the same, added up
}

// RequestReport describes one request.
type RequestReport struct {
	Index    int         `json:"index"`
	Op       string      `json:"op"`
	Bytes    uint64      `json:"bytes"`
	Path     string      `json:"path,omitempty"` // transport; empty if none was usable
	Rail     string      `json:"rail,omitempty"`
	Reason   string      `json:"reason,omitempty"` // why this path
	Slices   int         `json:"slices"`           // pieces that the transport moved
	State    string      `json:"state"`
	Remote   string      `json:"remote"` // what is known about the peer's memory
	Code     int         `json:"code,omitempty"`
	Error    string      `json:"error,omitempty"`
	Rejected []Rejection `json:"rejected,omitempty"`
}

// PathReport adds up the requests of one path, with the same reason and rejections.
type PathReport struct {
	Path     string      `json:"path"`
	Rail     string      `json:"rail,omitempty"`
	Requests int         `json:"requests"`
	Bytes    uint64      `json:"bytes"` // of completed requests
	Slices   int         `json:"slices"`
	Failed   int         `json:"failed"`
	Reason   string      `json:"reason,omitempty"`
	Rejected []Rejection `json:"rejected,omitempty"`
}

// Rejection is a path that was not taken, and why.
type Rejection struct {
	Path    string             `json:"path"`
	Rail    string             `json:"rail,omitempty"`
	Reasons []transport.Reason `json:"reasons"`
}

// Report describes the tasks submitted since the last Reset. Tasks that have not ended are described as
// waiting, without counts.
func (b *Batch) Report() *Report {
	r := &Report{Requests: make([]RequestReport, b.Len())}
	rows := make(map[*plan]int)
	for i := range r.Requests {
		t := &b.tasks[i]
		q := &r.Requests[i]
		s := t.status()
		*q = RequestReport{Index: i, Op: t.req.Op.String(), Bytes: t.req.Len, State: s.State.String(), Remote: s.Remote.String()}
		if s.Err != nil {
			q.Code, q.Error = int(xfer.CodeOf(s.Err)), s.Err.Error()
		}
		if !s.State.Terminal() || t.plan == nil {
			continue
		}
		q.Path, q.Rail, q.Reason, q.Slices, q.Rejected = t.plan.path, t.plan.rail, t.plan.reason, int(t.chunks), t.plan.rejected()
		row, seen := rows[t.plan]
		if !seen {
			row = r.pathRow(q)
			rows[t.plan] = row
		}
		p := &r.Paths[row]
		p.Requests++
		p.Slices += q.Slices
		if s.State == xfer.Completed {
			p.Bytes += s.Bytes
		} else {
			p.Failed++
		}
	}
	return r
}

// pathRow returns the index of the row that q counts in. Plans differ by size and operation, rows need not.
func (r *Report) pathRow(q *RequestReport) int {
	for i := range r.Paths {
		p := &r.Paths[i]
		if p.Path == q.Path && p.Rail == q.Rail && p.Reason == q.Reason && slices.EqualFunc(p.Rejected, q.Rejected, Rejection.equal) {
			return i
		}
	}
	r.Paths = append(r.Paths, PathReport{Path: q.Path, Rail: q.Rail, Reason: q.Reason, Rejected: q.Rejected})
	return len(r.Paths) - 1
}

func (j Rejection) equal(k Rejection) bool {
	return j.Path == k.Path && j.Rail == k.Rail && slices.Equal(j.Reasons, k.Reasons)
}

func (pl *plan) rejected() []Rejection {
	var all []Rejection
	for i, row := range pl.decision.Rows {
		switch {
		case len(row.Rejected) > 0:
			all = append(all, Rejection{Path: row.Path, Rail: row.Rail, Reasons: row.Rejected})
		case i != pl.decision.Chosen:
			chosen := pl.decision.Rows[pl.decision.Chosen]
			all = append(all, Rejection{Path: row.Path, Rail: row.Rail, Reasons: []transport.Reason{{
				Code: "cost", Want: "at most " + chosen.Predicted.String(), Have: row.Predicted.String()}}})
		}
	}
	return all
}

// Explain answers which path a request would take now, and why, without sending anything. It is the answer
// that a submission gets.
func (m *Multi) Explain(target xfer.SegmentID, op xfer.Op, size uint64, pin xfer.Pin) (*selector.Decision, error) {
	p, err := m.peer(target)
	if err != nil {
		return nil, err
	}
	if op > xfer.Write {
		return nil, badOp(op)
	}
	pl := p.plan(p.current(), question(&xfer.Request{Op: op, Pin: pin, Len: size}))
	return &pl.decision, nil
}

// ExplainRequest is Explain for a whole request: its Doubts say what speaks against the memory that it names, on either
// side. A request without Local is asked about the peer's memory only. What Submit refuses at once is an error here.
func (m *Multi) ExplainRequest(r *xfer.Request) (*selector.Decision, error) {
	p, err := m.peer(r.Target)
	if err != nil {
		return nil, err
	}
	if f := checkRange(p, r); f != nil {
		return nil, f
	}
	v := p.current()
	pl := p.plan(v, question(r))
	d := pl.decision
	if r.Len == 0 {
		return &d, nil
	}
	if r.Local != 0 {
		if why, ok := m.localReason(r.Local, r.Len); !ok {
			d.Doubts = append(d.Doubts, why)
		}
	}
	if why := remoteReason(v.desc, pl.path, r.Remote, r.Len); why.Code != "" {
		d.Doubts = append(d.Doubts, why)
	}
	return &d, nil
}

// localReason looks for the registrations that hold a local range.
func (m *Multi) localReason(a xfer.Addr, n uint64) (why transport.Reason, ok bool) {
	for done := uint64(0); done < n; {
		lease, err := m.cfg.Regions.AcquireAt(a + xfer.Addr(done))
		if err != nil {
			return transport.Reason{Code: reasonLocal, Want: fmt.Sprintf("%#x + %d registered", uint64(a), n), Have: fmt.Sprintf("nothing registered from byte %d on", done),
				Side: xfer.SideCaller, Next: nextLocal}, false
		}
		done += lease.Region.Len - uint64(a+xfer.Addr(done)-lease.Region.Addr)
		lease.Release(1)
	}
	return transport.Reason{}, true
}
