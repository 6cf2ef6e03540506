package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

// pair is a target and an opened peer of it in one process, which the workers of tests reach over tcp.
type pair struct {
	memory *moonpath.Memory // the target's
	peer   *peer
	pin    moonpath.Pin
}

func newPair(t testing.TB, size uint64) *pair {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	open := func() *moonpath.Engine {
		e, err := moonpath.Open(context.Background(), moonpath.Options{Host: defaultHost, Bind: defaultHost, Environ: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
		return e
	}
	target, engine := open(), open()
	m, err := target.Alloc(size, moonpath.AllocOptions{Populate: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&app{ctx: context.Background()}).openPeer(engine, target.Name())
	if err != nil {
		t.Fatal(err)
	}
	pin, err := p.pin("tcp")
	if err != nil {
		t.Fatal(err)
	}
	return &pair{m, p, pin}
}

func (p *pair) worker(t testing.TB, l layout, op moonpath.Op) *worker {
	t.Helper()
	m, err := p.peer.engine.Alloc(l.local, moonpath.AllocOptions{LocalOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWorker(p.peer, m, uint64(p.memory.At(0)), l, 0, op, p.pin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func TestVerificationFindsOneWrongByte(t *testing.T) {
	const size = 64 << 10
	p := newPair(t, size)
	w := p.worker(t, layout{block: 1000, batch: 4, threads: 1, local: 8000, remote: size, cold: true}, moonpath.OpWrite)
	ctx := context.Background()
	if err := w.verify(ctx, p.peer); err != nil {
		t.Fatal(err)
	}
	const at = 60123
	if got := findMismatch(p.memory.Bytes()[:at], verifySeed, 0); got >= 0 {
		t.Errorf("byte %d of the target is not the pattern's", got)
	}
	p.memory.Bytes()[at] ^= 1
	err := w.readPattern(ctx, p.peer)
	var mismatch *toolError
	if !errors.As(err, &mismatch) || mismatch.exit != exitFailed || mismatch.name != "Mismatch" {
		t.Fatalf("%v, want a mismatch", err)
	}
	if where := hex(uint64(p.memory.At(at))); !strings.Contains(err.Error(), where) {
		t.Errorf("%q does not name %s", err, where)
	}
}

func TestFailedRequestsAreCountedAndEndTheLoop(t *testing.T) {
	const size = 4000
	p := newPair(t, size)
	w := p.worker(t, layout{block: 1000, batch: 4, threads: 1, local: size, remote: size}, moonpath.OpRead)
	w.requests[2].Remote = 4096 // no memory of the target
	var halt atomic.Bool
	w.loop(context.Background(), time.Now(), time.Hour, &halt)
	if w.errors != 1 || !errors.Is(w.err, xfer.Refused) || !halt.Load() {
		t.Errorf("%d errors, %v, halted %v; want one refused request", w.errors, w.err, halt.Load())
	}
}

func TestLoopTransfersAtLeastOnce(t *testing.T) {
	const size = 4000
	p := newPair(t, size)
	w := p.worker(t, layout{block: 1000, batch: 4, threads: 1, local: size, remote: size}, moonpath.OpWrite)
	fillPattern(w.memory.Bytes(), 1, 0)
	var halt atomic.Bool
	w.loop(context.Background(), time.Now(), 1, &halt)
	if w.batches != 1 || w.err != nil {
		t.Errorf("%d batches, %v", w.batches, w.err)
	}
	if got := findMismatch(p.memory.Bytes(), 1, 0); got >= 0 {
		t.Errorf("byte %d did not arrive", got)
	}
	if n := w.latency.Snapshot().Count; n != 1 {
		t.Errorf("%d latencies, want one", n)
	}
}
