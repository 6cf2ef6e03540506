package moonpath_test

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

// open opens the segment of another engine.
func open(t testing.TB, from, to *moonpath.Engine) moonpath.SegmentID {
	t.Helper()
	return openName(t, from, to.Name())
}

// pinned returns what makes requests insist on a transport.
func pinned(t testing.TB, e *moonpath.Engine, protocol string) moonpath.Pin {
	t.Helper()
	p, err := e.Pin(protocol)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// openName opens a segment by name.
func openName(t testing.TB, e *moonpath.Engine, name string) moonpath.SegmentID {
	t.Helper()
	id, err := e.OpenSegment(name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// batchID allocates a batch by Mooncake's verb; what is unfinished ends with the engine.
func batchID(t testing.TB, e *moonpath.Engine, capacity int) moonpath.BatchID {
	t.Helper()
	id, err := e.AllocateBatchID(capacity)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// await polls a batch until it has ended, as callers of Mooncake do.
func await(t testing.TB, e *moonpath.Engine, id moonpath.BatchID) moonpath.Status {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; runtime.Gosched() {
		s, err := e.GetBatchTransferStatus(id)
		if err != nil {
			t.Fatal(err)
		}
		if s.State.Terminal() {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("batch %d does not end", id)
		}
	}
}

// counter returns one of an engine's counters.
func counter(t testing.TB, e *moonpath.Engine, path, name string) int64 {
	t.Helper()
	for _, s := range e.Counters() {
		if s.Path == path && s.Name == name {
			return s.Value
		}
	}
	t.Fatalf("no counter %s of %s", name, path)
	return 0
}

// newBatch returns a batch that is closed with the test.
func newBatch(t testing.TB, e *moonpath.Engine, capacity int) *moonpath.Batch {
	t.Helper()
	b, err := e.NewBatch(moonpath.BatchOptions{Capacity: capacity})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close batch: %v", err)
		}
	})
	return b
}

// allocPrivate makes memory that peers may not reach.
func allocPrivate(t testing.TB, e *moonpath.Engine, n uint64) *moonpath.Memory {
	t.Helper()
	m, err := e.Alloc(n, moonpath.AllocOptions{LocalOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// unregistered returns an address at which nothing is registered, in either engine of the test: the memory
// around it stays mapped, so that nothing else comes to lie there.
func unregistered(t testing.TB, e *moonpath.Engine, n uint64) uint64 {
	t.Helper()
	m := alloc(t, e, n)
	if err := e.UnregisterLocalMemory(m.At(0)); err != nil {
		t.Fatal(err)
	}
	return uint64(m.At(0))
}

// fill gives every byte a value that depends on its place and on seed.
func fill(b []byte, seed byte) {
	for i := range b {
		b[i] = byte(i)*3 + byte(i>>8) + byte(i>>16) + seed
	}
}

// submit fills an empty batch.
func submit(t testing.TB, b *moonpath.Batch, requests ...moonpath.Request) {
	t.Helper()
	if err := b.Reset(); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Submit(t.Context(), requests); err != nil || n != len(requests) {
		t.Fatalf("submit: %d of %d accepted, %v", n, len(requests), err)
	}
}

// requireFault checks an error of the facade: its code, and that a reader learns where it happened and what to
// do next.
func requireFault(t testing.TB, err error, code moonpath.Code) {
	t.Helper()
	var f *moonpath.Fault
	switch {
	case err == nil:
		t.Errorf("no error, want %v", code)
	case !errors.As(err, &f):
		t.Errorf("%v is no *Fault", err)
	case !errors.Is(err, code) || xfer.CodeOf(err) != code:
		t.Errorf("code %v, want %v, of: %v", xfer.CodeOf(err), code, err)
	case f.Stage == "" || f.MustChange() == "" || f.NextStep() == "":
		t.Errorf("no stage, no side that has to change something, or no next step: %v", err)
	case f.Detail == "" && f.Cause == nil:
		t.Errorf("nothing says what was wrong: %v", err)
	}
}

// eventually waits for something that happens in another goroutine and tells nobody.
func eventually(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}
