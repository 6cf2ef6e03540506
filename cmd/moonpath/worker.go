package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/xfer"
)

// worker is one submitting thread of a measurement. Its loop reuses one batch and one slice of requests, and reads
// the clock once per batch.
type worker struct {
	memory   *moonpath.Memory
	target   moonpath.SegmentID
	remote   uint64 // address that the cursor's offsets count from
	block    uint64
	at       cursor
	batch    *moonpath.Batch
	requests []moonpath.Request
	dirty    bool // the batch holds ended tasks

	latency *obs.Histogram
	batches uint64
	ended   time.Duration // when the loop was done, since its base
	errors  uint64        // failed tasks
	err     error         // the first one
}

func newWorker(p *peer, m *moonpath.Memory, remote uint64, l layout, thread int, op moonpath.Op, pin moonpath.Pin) (*worker, error) {
	b, err := p.engine.NewBatch(moonpath.BatchOptions{Capacity: l.batch})
	if err != nil {
		return nil, err
	}
	w := &worker{
		memory: m, target: p.id, remote: remote, block: l.block, at: l.cursor(thread), batch: b,
		requests: make([]moonpath.Request, l.batch), latency: new(obs.Histogram),
	}
	for i := range w.requests {
		w.requests[i] = moonpath.Request{Op: op, Pin: pin, Len: l.block, Target: p.id}
	}
	w.place()
	return w, nil
}

// place points the requests at the current window.
func (w *worker) place() {
	local, remote := w.memory.At(w.at.local()), w.remote+w.at.remote()
	for i := range w.requests {
		w.requests[i].Local = local + moonpath.Addr(uint64(i)*w.block)
		w.requests[i].Remote = remote + uint64(i)*w.block
	}
}

// loop transfers windows until limit after base, at least one, or until halt is set or a task fails. The latency of
// a batch reaches from the end of the one before.
func (w *worker) loop(ctx context.Context, base time.Time, limit time.Duration, halt *atomic.Bool) {
	w.batches, w.ended = 0, 0
	for last := time.Since(base); !halt.Load(); {
		if err := w.once(ctx); err != nil {
			w.fail(err)
			halt.Store(true)
			break
		}
		if w.at.advance() {
			w.place()
		}
		now := time.Since(base)
		w.latency.Record(int64(now - last))
		w.batches++
		last = now
		if now >= limit {
			break
		}
	}
	w.ended = time.Since(base)
}

// once transfers the current window.
func (w *worker) once(ctx context.Context) error {
	if w.dirty {
		if err := w.batch.Reset(); err != nil {
			return err
		}
	}
	w.dirty = true
	if _, err := w.batch.Submit(ctx, w.requests); err != nil {
		return err
	}
	return w.batch.Wait(ctx)
}

// fail keeps the first error and counts the tasks of the batch that did not complete.
func (w *worker) fail(err error) {
	if w.err == nil {
		w.err = err
	}
	failed := uint64(0)
	for i := range w.requests {
		if s, err := w.batch.Status(i); err != nil || s.State != xfer.Completed {
			failed++
		}
	}
	w.errors += max(failed, 1)
}

// paths adds what the last batch took.
func (w *worker) paths(t *pathTally) {
	if w.dirty {
		t.add(w.batch.Report())
	}
}

func (w *worker) close() error { return w.batch.Close() }

func closeWorkers(ws []*worker) error {
	var errs []error
	for _, w := range ws {
		errs = append(errs, w.close())
	}
	return errors.Join(errs...)
}
