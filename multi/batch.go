package multi

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// Batch is a set of tasks that are waited for together. One goroutine at a time may submit, reset or free;
// Wait, Status, Done, Report, Cancel and Close may be called from any meanwhile, but not Status and Report
// during Reset and the first submission after it.
type Batch struct {
	multi    *Multi
	id       xfer.BatchID
	deadline time.Duration

	mu       sync.Mutex // one submitter at a time
	tasks    []task
	routes   []*route // that hold or held tasks since the last Reset; routesMu guards writes and reads of others
	routesMu sync.Mutex
	closed   atomic.Bool
	closing  sync.Once
	quit     chan struct{} // closed when Close begins

	used  atomic.Int32  // tasks submitted
	left  atomic.Int32  // tasks not ended
	ended chan struct{} // one slot: look at left again

	doneMu sync.Mutex
	done   chan struct{} // made by Done; nil once it is closed

	expires atomic.Int64 // when the sweeper looks for overdue tasks, Unix nanoseconds
}

// task is one request of a batch, in the batch's own array. What has no other comment is guarded by the
// lock of its route until state is terminal, and does not change afterwards.
type task struct {
	batch   *Batch
	req     xfer.Request
	expires int64 // Unix nanoseconds; 0: never
	plan    *plan // nil: ended without one
	first   piece // further pieces hang on it

	state  atomic.Uint32 // xfer.State
	left   uint64        // bytes not given back, queued or handed out
	moved  uint64        // bytes done
	chunks uint32        // handed out
	remote xfer.Certainty
	fault  *xfer.Fault
	cause  cause
}

// cause says why the rest of a task is not wanted any more.
type cause uint8

const (
	causeNone cause = iota
	causeCancel
	causeDeadline
)

// piece is a queue entry: part of a task, in one local region and one remote buffer.
type piece struct {
	next  *piece // in its queue
	more  *piece // of the same task
	task  *task
	local mem.Lease
	queue transport.Queue

	off, remote, len uint64
	cut              uint64 // handed out so far; under the route's lock
}

// NewBatch returns a batch for up to capacity tasks. deadline bounds each task from the call that submits it;
// 0 is none.
func (m *Multi) NewBatch(capacity int, deadline time.Duration) (*Batch, error) {
	if m.closed.Load() {
		return nil, closedFault(xfer.StageArgument)
	}
	if capacity < 0 || capacity > maxCapacity {
		return nil, &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageArgument, Detail: fmt.Sprintf("batch capacity %d is not between 0 and %d", capacity, maxCapacity)}
	}
	b := &Batch{multi: m, deadline: deadline, tasks: make([]task, capacity), ended: make(chan struct{}, 1), quit: make(chan struct{})}
	m.batches.add(b)
	return b, nil
}

// maxCapacity bounds the tasks of one batch, so that a wrong number does not take all memory.
const maxCapacity = 1 << 20

// ID returns the batch's handle.
func (b *Batch) ID() xfer.BatchID { return b.id }

// Len returns the number of tasks submitted since the last Reset.
func (b *Batch) Len() int { return int(b.used.Load()) }

// Capacity returns the largest number of tasks.
func (b *Batch) Capacity() int { return len(b.tasks) }

// Status returns the state of one task; tasks count from 0 in the order of submission.
func (b *Batch) Status(i int) (xfer.Status, error) {
	if i < 0 || i >= b.Len() {
		return xfer.Status{State: xfer.Invalid}, &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageArgument, Detail: fmt.Sprintf("task %d of a batch with %d tasks", i, b.Len())}
	}
	return b.tasks[i].status(), nil
}

func (t *task) status() xfer.Status {
	s := xfer.Status{State: xfer.State(t.state.Load())}
	if !s.State.Terminal() {
		return s
	}
	s.Bytes, s.Remote = t.moved, t.remote
	if t.fault != nil {
		s.Err = t.fault
	}
	return s
}

// Wait returns when no task is unfinished: nil if all completed, else the error of the first that did not.
// If ctx ends first Wait returns Interrupted and the tasks go on.
func (b *Batch) Wait(ctx context.Context) error {
	if err := b.await(ctx); err != nil {
		return &xfer.Fault{Code: xfer.Interrupted, Stage: xfer.StageComplete, Cause: err, Detail: "waiting for a batch; its tasks go on"}
	}
	return b.Err()
}

// await returns when no task is unfinished, or with ctx's error. What is in the slot is a hint only: it may
// be late, and speak of tasks that ended before newer ones began.
func (b *Batch) await(ctx context.Context) error {
	for b.left.Load() != 0 {
		select {
		case <-b.ended:
			if b.left.Load() == 0 {
				b.wake() // for further waiters
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Err returns the error of the first task that ended otherwise than completed, or nil.
func (b *Batch) Err() error {
	for i := range b.Len() {
		t := &b.tasks[i]
		if s := xfer.State(t.state.Load()); s.Terminal() && s != xfer.Completed {
			return t.fault
		}
	}
	return nil
}

// Done returns a channel that is closed when no task is unfinished. After further submissions ask again.
func (b *Batch) Done() <-chan struct{} {
	b.doneMu.Lock()
	defer b.doneMu.Unlock()
	if b.done == nil {
		b.done = make(chan struct{})
	}
	done := b.done
	b.closeDone()
	return done
}

// end counts n tasks as ended. The owner may reset the batch and submit anew at once, so what follows the
// count may come late and looks at it again.
func (b *Batch) end(n int32) {
	if b.left.Add(-n) == 0 {
		b.wake()
		b.doneMu.Lock()
		b.closeDone()
		b.doneMu.Unlock()
	}
}

func (b *Batch) wake() {
	select {
	case b.ended <- struct{}{}:
	default:
	}
}

// closeDone closes the channel of Done if no task is unfinished; doneMu is held.
func (b *Batch) closeDone() {
	if b.done != nil && b.left.Load() == 0 {
		close(b.done)
		b.done = nil
	}
}

// Reset empties the batch for reuse. It fails with BatchBusy while a task is unfinished.
func (b *Batch) Reset() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		return &xfer.Fault{Code: xfer.Closed, Stage: xfer.StageArgument, Detail: "the batch is closed"}
	}
	if !b.settled() {
		return b.busy()
	}
	b.used.Store(0)
	b.routesMu.Lock()
	b.routes = b.routes[:0]
	b.routesMu.Unlock()
	b.doneMu.Lock()
	defer b.doneMu.Unlock()
	b.closeDone()
	return nil
}

// settled reports whether no task is unfinished. A caller who saw the last status may come before the
// count of ended tasks does; that gap is waited out.
func (b *Batch) settled() bool {
	for i := range b.Len() {
		if !xfer.State(b.tasks[i].state.Load()).Terminal() {
			return false
		}
	}
	_ = b.await(context.Background())
	return true
}

func (b *Batch) busy() error {
	return &xfer.Fault{Code: xfer.BatchBusy, Stage: xfer.StageArgument, Detail: fmt.Sprintf("%d of %d tasks are unfinished", b.left.Load(), b.Len())}
}

// Free gives the handle back. It fails with BatchBusy while a task is unfinished.
func (b *Batch) Free() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		return &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageArgument, Detail: "the batch was freed before"}
	}
	if !b.settled() {
		return b.busy()
	}
	b.closed.Store(true)
	b.multi.batches.remove(b.id)
	return nil
}

// Close cancels what is unfinished, a submission that waits for room included, returns when local memory is
// quiet, and gives the handle back. A second Close does nothing.
func (b *Batch) Close() error {
	b.closing.Do(func() { close(b.quit) })
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Swap(true) {
		return nil
	}
	b.Cancel() // what was submitted meanwhile
	_ = b.await(context.Background())
	b.multi.batches.remove(b.id)
	return nil
}

// Cancel asks for the unfinished tasks to end soon, as Canceled; Wait says when they have.
func (b *Batch) Cancel() { b.cancel(causeCancel, math.MaxInt64) }

// cancel asks for the unfinished tasks that expire at or before that time.
func (b *Batch) cancel(why cause, expire int64) {
	b.routesMu.Lock()
	routes := slices.Clone(b.routes)
	b.routesMu.Unlock()
	for _, r := range routes {
		r.cancel(b, why, expire)
	}
}

// Overall returns the state of the batch as a whole: Waiting while a task is unfinished, then Completed with
// the sum of bytes, or Failed with the first error. An empty batch is Completed.
func (b *Batch) Overall() xfer.Status {
	total := xfer.Status{State: xfer.Completed}
	for i := range b.Len() {
		s := b.tasks[i].status()
		switch {
		case !s.State.Terminal():
			return xfer.Status{State: xfer.Waiting}
		case s.State != xfer.Completed && total.State == xfer.Completed:
			total.State, total.Err = xfer.Failed, s.Err
		}
		total.Remote = max(total.Remote, s.Remote)
		total.Bytes += s.Bytes
	}
	return total
}
