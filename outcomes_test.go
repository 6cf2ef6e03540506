package moonpath_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/wire/segjson"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

const outcomesPage = "docs/explanation/outcomes.md"

// outcome is a batch with one task, brought to where the page says it may be.
type outcome struct {
	engine *moonpath.Engine
	batch  *moonpath.Batch
	local  *moonpath.Memory
	check  func(t *testing.T) // of what is true of the peer's memory; may be nil
}

// outcomeOf submits one request and waits for its end, if it has one.
func outcomeOf(t *testing.T, e *moonpath.Engine, o moonpath.BatchOptions, local *moonpath.Memory, r moonpath.Request, meanwhile func(*moonpath.Batch)) outcome {
	t.Helper()
	o.Capacity = 1
	b, err := e.NewBatch(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	submit(t, b, r)
	if meanwhile != nil {
		meanwhile(b)
	}
	_ = b.Wait(t.Context()) // its error is checked with the status
	return outcome{engine: e, batch: b, local: local}
}

// stalledOutcome is a request to a peer that takes the header and then neither answers nor reads.
func stalledOutcome(t *testing.T, op moonpath.Op, o moonpath.BatchOptions, cancel bool) outcome {
	begun := make(chan struct{}, 64)
	peer := newRawPeer(t, func(c net.Conn) {
		if _, err := readHeader(c); err == nil {
			begun <- struct{}{}
		}
		frame := make([]byte, 1)
		for { // until the connection ends, without answering
			if _, err := io.ReadFull(c, frame); err != nil {
				return
			}
		}
	})
	e := openEngine(t, nil)
	t.Cleanup(peer.close) // first, so that the engine does not wait for answers that never come
	local := alloc(t, e, 4096)
	r := moonpath.Request{Op: op, Local: local.At(0), Len: 4096, Target: openName(t, e, peer.name), Remote: rawMemory}
	return outcomeOf(t, e, o, local, r, func(b *moonpath.Batch) {
		<-begun
		if cancel {
			b.Cancel()
		}
	})
}

// outcomes makes each row of the page happen.
var outcomes = map[string]func(t *testing.T) outcome{
	"waiting": func(t *testing.T) outcome {
		b, e, _ := stalledTransfer(t)
		return outcome{engine: e, batch: b}
	},
	"invalid": func(t *testing.T) outcome {
		e := openEngine(t, nil)
		return outcome{engine: e, batch: newBatch(t, e, 1)}
	},
	"completed": func(t *testing.T) outcome {
		target, e := openEngine(t, nil), openEngine(t, nil)
		there, here := alloc(t, target, 4096), alloc(t, e, 4096)
		fill(here.Bytes(), 7)
		want := bytes.Clone(here.Bytes())
		r := moonpath.Request{Op: moonpath.OpWrite, Pin: pinned(t, e, "tcp"), Local: here.At(0), Len: 4096, Target: open(t, e, target), Remote: uint64(there.At(0))}
		end := outcomeOf(t, e, moonpath.BatchOptions{}, here, r, nil)
		end.check = func(t *testing.T) {
			if !bytes.Equal(there.Bytes(), want) {
				t.Error("the bytes are not in the peer's memory")
			}
		}
		return end
	},
	"completed-unconfirmed": func(t *testing.T) outcome {
		got := make(chan []byte, 1)
		peer := newRawPeer(t, func(c net.Conn) { // version 1: takes one request and closes
			if h, err := readHeader(c); err == nil {
				payload := make([]byte, h.Size)
				_, _ = io.ReadFull(c, payload)
				got <- payload
			}
		}).announce(func(d *segjson.Descriptor) { d.TCPProtoVersion = 0 })
		e := openEngine(t, nil)
		here := alloc(t, e, 4096)
		fill(here.Bytes(), 7)
		want := bytes.Clone(here.Bytes())
		r := moonpath.Request{Op: moonpath.OpWrite, Local: here.At(0), Len: 4096, Target: openName(t, e, peer.name), Remote: rawMemory}
		end := outcomeOf(t, e, moonpath.BatchOptions{}, here, r, nil)
		end.check = func(t *testing.T) {
			if !bytes.Equal(<-got, want) {
				t.Error("the peer got other bytes")
			}
		}
		return end
	},
	"failed-unstarted": func(t *testing.T) outcome {
		target, e := openEngine(t, nil), openEngine(t, nil)
		there, here := alloc(t, target, 4096), alloc(t, e, 4096)
		r := moonpath.Request{Op: moonpath.OpWrite, Pin: pinned(t, e, "rdma"), Local: here.At(0), Len: 4096, Target: open(t, e, target), Remote: uint64(there.At(0))}
		return outcomeOf(t, e, moonpath.BatchOptions{}, here, r, nil)
	},
	"failed": func(t *testing.T) outcome {
		target, e := openEngine(t, nil), openEngine(t, nil)
		there, here := allocPrivate(t, target, 4096), alloc(t, e, 4096)
		fill(here.Bytes(), 7)
		r := moonpath.Request{Op: moonpath.OpWrite, Pin: pinned(t, e, "tcp"), Local: here.At(0), Len: 4096, Target: open(t, e, target), Remote: uint64(there.At(0))}
		end := outcomeOf(t, e, moonpath.BatchOptions{}, here, r, nil)
		end.check = func(t *testing.T) {
			if !bytes.Equal(there.Bytes(), make([]byte, 4096)) {
				t.Error("a refused write changed the peer's memory")
			}
		}
		return end
	},
	"failed-unknown": func(t *testing.T) outcome {
		peer := newRawPeer(t, func(c net.Conn) { // takes a write and dies, every time
			if h, err := readHeader(c); err == nil {
				_, _ = io.CopyN(io.Discard, c, int64(h.Size))
			}
		})
		e := openEngine(t, nil)
		here := alloc(t, e, 4096)
		r := moonpath.Request{Op: moonpath.OpWrite, Local: here.At(0), Len: 4096, Target: openName(t, e, peer.name), Remote: rawMemory}
		return outcomeOf(t, e, moonpath.BatchOptions{}, here, r, nil)
	},
	"canceled": func(t *testing.T) outcome {
		return stalledOutcome(t, moonpath.OpRead, moonpath.BatchOptions{}, true)
	},
	"canceled-unknown": func(t *testing.T) outcome {
		return stalledOutcome(t, moonpath.OpWrite, moonpath.BatchOptions{}, true)
	},
	"timed-out": func(t *testing.T) outcome {
		return stalledOutcome(t, moonpath.OpRead, moonpath.BatchOptions{Deadline: 50 * time.Millisecond}, false)
	},
	"timed-out-unknown": func(t *testing.T) outcome {
		return stalledOutcome(t, moonpath.OpWrite, moonpath.BatchOptions{Deadline: 50 * time.Millisecond}, false)
	},
}

// TestEveryOutcomeIsWhatItsPageSays takes the rows from the page, so that a row without a way to make it happen fails,
// and so does a way without a row.
func TestEveryOutcomeIsWhatItsPageSays(t *testing.T) {
	rows, ids := documented(t, outcomesPage, "id", "what happened", "State", "number", "Remote", "error code")
	_, consequences := documented(t, outcomesPage, "id", "local memory", "the peer's memory", "what the caller may do")
	if !slices.Equal(ids, consequences) {
		t.Errorf("the two tables differ: %q and %q", ids, consequences)
	}
	for id := range outcomes {
		if rows[id] == nil {
			t.Errorf("%s has no row for %q", outcomesPage, id)
		}
	}
	for _, id := range ids {
		t.Run(id, func(t *testing.T) {
			make, ok := outcomes[id]
			if !ok {
				t.Fatalf("no test makes %q happen", id)
			}
			checkOutcome(t, id, rows[id], make(t))
		})
	}
}

func checkOutcome(t *testing.T, id string, row []string, o outcome) {
	s, err := o.engine.GetTransferStatus(o.batch.ID(), 0)
	if id == "invalid" {
		s.Err = err
	} else if err != nil {
		t.Fatal(err)
	}
	remote := s.Remote.String()
	if !s.State.Terminal() {
		remote = "–"
	}
	code := strconv.Itoa(int(xfer.CodeOf(s.Err)))
	if row[5] == "any" && s.Err != nil {
		code = "any"
	}
	if got := []string{s.State.String(), strconv.Itoa(int(s.State)), remote, code}; !slices.Equal(got, row[2:]) {
		t.Errorf("is %q, the page says %q (%v)", got, row[2:], s.Err)
	}
	if s.Err != nil {
		requireFault(t, s.Err, xfer.CodeOf(s.Err))
		if unknown := strings.Contains(s.Err.Error(), "remote state unknown"); unknown != (s.Remote == xfer.Unknown) {
			t.Errorf("remote is %s, the error says %q", remote, s.Err)
		}
	}
	if id == "invalid" {
		return
	}
	r := o.batch.Report().Requests[0]
	if r.State != s.State.String() || r.Remote != s.Remote.String() || r.Code != int(xfer.CodeOf(s.Err)) || (r.Error != "") != (s.Err != nil) {
		t.Errorf("the report differs from the status: %+v, %+v", r, s)
	}
	overall, err := o.engine.GetBatchTransferStatus(o.batch.ID())
	want := s
	if s.State.Terminal() && s.State != xfer.Completed {
		want.State = xfer.Failed
	}
	if err != nil || overall.State != want.State || overall.Remote != want.Remote || xfer.CodeOf(overall.Err) != xfer.CodeOf(s.Err) {
		t.Errorf("the batch as a whole is %+v, %v, want %+v", overall, err, want)
	}
	if !s.State.Terminal() {
		return
	}
	if err := o.batch.Wait(t.Context()); xfer.CodeOf(err) != xfer.CodeOf(s.Err) {
		t.Errorf("Wait returns %v, the status has %v", err, s.Err)
	}
	// A registration that something still uses would be waited for, and then be busy.
	start := time.Now()
	if err := o.engine.UnregisterLocalMemory(o.local.At(0)); err != nil || time.Since(start) > 5*time.Second {
		t.Errorf("local memory is not quiet: unregistering took %v, %v", time.Since(start), err)
	}
	if o.check != nil {
		o.check(t)
	}
}

// Transfer tells what Write, which has one error only, cannot.
func TestTransferTellsOutcomesApart(t *testing.T) {
	closing := newRawPeer(t, func(c net.Conn) {
		if h, err := readHeader(c); err == nil {
			_, _ = io.CopyN(io.Discard, c, int64(h.Size))
		}
	}).announce(func(d *segjson.Descriptor) { d.TCPProtoVersion = 0 })
	refusing := newRawPeer(t, func(c net.Conn) {
		if _, err := readHeader(c); err == nil {
			frame := make([]byte, tcpframe.StatusLen)
			tcpframe.PutStatus(frame, tcpframe.AddressRejected)
			_, _ = c.Write(frame)
			_, _ = readHeader(c)
		}
	})
	silent := newRawPeer(t, nil)
	e := openEngine(t, func(o *moonpath.Options) { o.Settings = map[string]string{"transfer.timeout": "1s"} })
	t.Cleanup(silent.close) // first, so that the engine does not wait for answers that never come
	here := alloc(t, e, 4096)
	for _, c := range []struct {
		name   string
		limit  time.Duration // of the caller; 0: none
		op     moonpath.Op
		target moonpath.SegmentID
		state  xfer.State
		remote xfer.Certainty
		code   moonpath.Code
		path   string
	}{
		{"unconfirmed", 0, moonpath.OpWrite, openName(t, e, closing.name), xfer.Completed, xfer.Unconfirmed, xfer.OK, ""},
		{"refused", 0, moonpath.OpRead, openName(t, e, refusing.name), xfer.Failed, xfer.Confirmed, xfer.Refused, "tcp"},
		{"canceled", 200 * time.Millisecond, moonpath.OpWrite, openName(t, e, silent.name), xfer.Canceled, xfer.Unknown, xfer.Interrupted, "tcp"},
		{"timed out", 0, moonpath.OpRead, openName(t, e, silent.name), xfer.Timeout, xfer.Confirmed, xfer.Deadline, "tcp"},
		{"no such segment", 0, moonpath.OpRead, 99, xfer.Failed, xfer.Confirmed, xfer.InvalidArgument, ""},
	} {
		ctx := t.Context()
		if c.limit > 0 {
			limited, cancel := context.WithTimeout(ctx, c.limit)
			defer cancel()
			ctx = limited
		}
		s, err := e.Transfer(ctx, moonpath.Request{Op: c.op, Local: here.At(0), Len: 4096, Target: c.target, Remote: rawMemory})
		if s.State != c.state || s.Remote != c.remote || xfer.CodeOf(err) != c.code || !errors.Is(err, s.Err) {
			t.Errorf("%s: %+v, %v; want %s, %s, %s", c.name, s, err, c.state, c.remote, c.code.Name())
		}
		var f *moonpath.Fault
		if errors.As(err, &f) && (f.Path != c.path || f.Remote != s.Remote) {
			t.Errorf("%s: the fault has path %q and remote %s, want %q and %s", c.name, f.Path, f.Remote, c.path, s.Remote)
		}
	}
	closed := openEngine(t, nil)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err := closed.Transfer(t.Context(), moonpath.Request{}); s.State != xfer.Invalid || !errors.Is(err, xfer.Closed) {
		t.Errorf("on a closed engine: %+v, %v", s, err)
	}
}
