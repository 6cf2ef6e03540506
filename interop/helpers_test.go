package interop

import (
	"context"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/interop/cxx"
	"github.com/moonpath-io/moonpath/interop/pattern"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// needCxx skips a test of several parts by its own name.
func needCxx(t testing.TB) {
	t.Helper()
	if _, reason := cxx.Available(); reason != "" {
		t.Skipf("the published C++ engine is not available: %s", reason)
	}
}

// openEngine opens a moonpath engine on loopback that ends with the test. A test opens it after the C++ peers, so that
// it ends before them.
func openEngine(t testing.TB, settings map[string]string) *moonpath.Engine {
	t.Helper()
	e, err := moonpath.Open(t.Context(), moonpath.Options{Host: "127.0.0.1", Environ: []string{}, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close of the engine: %v", err)
		}
	})
	return e
}

func openSegment(t testing.TB, e *moonpath.Engine, name string) moonpath.SegmentID {
	t.Helper()
	id, err := e.OpenSegment(name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func alloc(t testing.TB, e *moonpath.Engine, n uint64) *moonpath.Memory {
	t.Helper()
	m, err := e.Alloc(n, moonpath.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func allocCxx(t testing.TB, p *cxx.Peer, n uint64) uint64 {
	t.Helper()
	addr, err := p.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func fillCxx(t testing.TB, p *cxx.Peer, addr, n, seed uint64) {
	t.Helper()
	if err := p.Fill(addr, n, seed); err != nil {
		t.Fatal(err)
	}
}

// wantCxx compares memory of the C++ peer, in the peer if it is long.
func wantCxx(t testing.TB, p *cxx.Peer, what string, addr uint64, want []byte) {
	t.Helper()
	sum, err := p.Checksum(addr, uint64(len(want)))
	if err != nil {
		t.Fatal(err)
	}
	if sum != pattern.Checksum(want) {
		t.Errorf("%s: %d bytes of the C++ peer at %#x are not what they should be", what, len(want), addr)
	}
}

// bounded gives a context that ends long before the test's own deadline, and long after anything here should.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	t.Cleanup(cancel)
	return ctx
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
			t.Errorf("close of a batch: %v", err)
		}
	})
	return b
}

// run submits all requests as one batch and waits for its end.
func run(t testing.TB, e *moonpath.Engine, requests []moonpath.Request) (*moonpath.Batch, error) {
	t.Helper()
	b := newBatch(t, e, len(requests))
	return b, submitAndWait(t, b, requests)
}

// submitAndWait may be called from any goroutine.
func submitAndWait(t testing.TB, b *moonpath.Batch, requests []moonpath.Request) error {
	ctx := bounded(t)
	if _, err := b.Submit(ctx, requests); err != nil {
		return err
	}
	return b.Wait(ctx)
}

// counter returns one of the engine's numbers, 0 if there is none of that name.
func counter(e *moonpath.Engine, path, name string) int64 {
	for _, s := range e.Counters() {
		if s.Path == path && s.Name == name {
			return s.Value
		}
	}
	return 0
}

// eventually waits for something that another process makes true.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not seen within 20 s: %s", what)
		}
	}
}
