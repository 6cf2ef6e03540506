package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/obs"
)

const (
	// What --beside-bulk runs in the background, on the last bytes of the buffer.
	bulkBlock  = 16 << 20
	bulkBatch  = 4
	bulkBytes  = bulkBlock * bulkBatch
	bulkBuffer = 2 * bulkBytes // the least buffer it accepts
)

// measurement is one cell of a bench: what to run, and where.
type measurement struct {
	peer     *peer
	op       moonpath.Op
	pin      moonpath.Pin
	layout   layout
	memory   *moonpath.Memory // layout.local bytes for the threads, then bulkBytes if beside
	remote   uint64           // address of layout.remote bytes for the threads, then bulkBytes if beside
	warmUp   time.Duration    // not counted: connections, page tables, caches
	duration time.Duration
	verify   bool
	beside   bool
}

// benchResult is what --json prints.
type benchResult struct {
	Op                string    `json:"op"`
	BlockBytes        uint64    `json:"block_bytes"`
	Batch             int       `json:"batch"`
	Threads           int       `json:"threads"`
	Transport         string    `json:"transport"`
	Requests          uint64    `json:"requests"`
	Bytes             uint64    `json:"bytes"`
	Seconds           float64   `json:"seconds"`
	BytesPerSecond    float64   `json:"bytes_per_second"`
	RequestsPerSecond float64   `json:"requests_per_second"`
	CPUSecondsPerGB   float64   `json:"cpu_seconds_per_gb"` // of this process, per 10^9 bytes
	Latency           latencies `json:"latency_us"`         // of a batch, from submission to completion
	Verified          *bool     `json:"verified"`           // null: not asked
	Errors            uint64    `json:"errors"`             // failed requests
	BulkPerSecond     float64   `json:"bulk_bytes_per_second,omitempty"`

	cpu time.Duration
	err error // the first of Errors
}

type latencies struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
}

// run measures. The error is one that came before there was anything to measure; what fails later is in the result.
func (m *measurement) run(ctx context.Context) (_ *benchResult, err error) {
	workers, err := m.workers()
	defer func() {
		if closing := closeWorkers(workers); err == nil {
			err = closing
		}
	}()
	if err != nil {
		return nil, err
	}
	if err := warm(ctx, workers, m.warmUp); err != nil {
		return nil, err
	}
	r := &benchResult{Op: m.op.String(), BlockBytes: m.layout.block, Batch: m.layout.batch, Threads: m.layout.threads}
	if m.verify && m.op == moonpath.OpRead {
		m.check(ctx, workers, r)
	}
	if r.err == nil {
		if err := m.measure(ctx, workers, r); err != nil {
			return nil, err
		}
	}
	if m.verify && m.op == moonpath.OpWrite && r.err == nil {
		m.check(ctx, workers, r)
	}
	return r, nil
}

func (m *measurement) workers() (ws []*worker, err error) {
	for t := range m.layout.threads {
		w, err := newWorker(m.peer, m.memory, m.remote, m.layout, t, m.op, m.pin)
		if err != nil {
			return ws, err
		}
		ws = append(ws, w)
	}
	return ws, nil
}

// warm runs all workers for a moment; whatever fails here fails for a reason that the whole measurement would have.
func warm(ctx context.Context, ws []*worker, d time.Duration) error {
	if d == 0 {
		return nil
	}
	var halt atomic.Bool
	together(ws, func(w *worker, base time.Time) { w.loop(ctx, base, d, &halt) })
	for _, w := range ws {
		if w.err != nil {
			return w.err
		}
		w.latency = new(obs.Histogram)
	}
	return nil
}

// together calls do for every worker in a goroutine of its own and waits; base is when they start.
func together(ws []*worker, do func(w *worker, base time.Time)) {
	var group sync.WaitGroup
	base := time.Now()
	for _, w := range ws {
		group.Go(func() { do(w, base) })
	}
	group.Wait()
}

func (m *measurement) measure(ctx context.Context, ws []*worker, r *benchResult) error {
	stopBulk := func(*benchResult) error { return nil }
	if m.beside {
		stop, err := m.startBulk(ctx)
		if err != nil {
			return err
		}
		stopBulk = stop
	}
	var halt atomic.Bool
	before := cpuTime()
	together(ws, func(w *worker, base time.Time) { w.loop(ctx, base, m.duration, &halt) })
	used := cpuTime() - before
	r.count(ws, used)
	return stopBulk(r)
}

// count fills the result from what the workers did.
func (r *benchResult) count(ws []*worker, cpu time.Duration) {
	var all obs.Distribution
	var tally pathTally
	var span time.Duration
	for _, w := range ws {
		r.Requests += w.batches * uint64(r.Batch)
		span = max(span, w.ended)
		all.Merge(w.latency.Snapshot())
		w.paths(&tally)
		r.Errors += w.errors
		if r.err == nil {
			r.err = w.err
		}
	}
	r.Transport = tally.names()
	r.Bytes = r.Requests * r.BlockBytes
	r.Seconds = span.Seconds()
	r.BytesPerSecond = perSecond(r.Bytes, span)
	r.RequestsPerSecond = perSecond(r.Requests, span)
	r.cpu = cpu
	r.chargeCPU(r.Bytes)
	r.Latency = latencies{microseconds(all.P50()), microseconds(all.P99()), microseconds(all.P999())}
}

// chargeCPU divides the processor time by all bytes that it moved.
func (r *benchResult) chargeCPU(bytes uint64) {
	if bytes > 0 {
		r.CPUSecondsPerGB = r.cpu.Seconds() / (float64(bytes) / 1e9)
	}
}

func microseconds(ns int64) float64 { return float64(ns) / 1e3 }

// startBulk runs large transfers of the same direction on the same engine until the function that it returns is
// called, which adds their rate and errors to the result.
func (m *measurement) startBulk(ctx context.Context) (stop func(*benchResult) error, err error) {
	l := layout{block: bulkBlock, batch: bulkBatch, threads: 1, local: bulkBytes, remote: bulkBytes}
	w, err := newWorker(m.peer, m.memory, m.remote+m.layout.remote, l, 0, m.op, m.pin)
	if err != nil {
		return nil, err
	}
	w.at.localBase = m.layout.local
	w.place()
	if err := warm(ctx, []*worker{w}, m.warmUp); err != nil {
		return nil, errors.Join(err, w.close())
	}
	var halt atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.loop(ctx, time.Now(), maxSpan+time.Minute, &halt)
	}()
	return func(r *benchResult) error {
		halt.Store(true)
		<-done
		r.BulkPerSecond = perSecond(w.batches*bulkBytes, w.ended)
		r.chargeCPU(r.Bytes + w.batches*bulkBytes)
		r.Errors += w.errors
		if r.err == nil {
			r.err = w.err
		}
		return w.close()
	}, nil
}

// check verifies every worker's windows and says in the result whether the bytes are right.
func (m *measurement) check(ctx context.Context, ws []*worker, r *benchResult) {
	for _, w := range ws {
		if err := w.verify(ctx, m.peer); err != nil {
			r.err = err
			r.Errors += w.errors
			break
		}
	}
	verified := r.err == nil
	r.Verified = &verified
}

// cpuTime is the processor time of this process so far, user and system.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0 // cannot fail with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
