package moonpath

import (
	"context"
	"errors"
	"time"

	"github.com/moonpath-io/moonpath/multi"
	"github.com/moonpath-io/moonpath/xfer"
)

// BatchOptions configure a batch.
type BatchOptions struct {
	Capacity int           // largest number of tasks between two Resets
	Deadline time.Duration // of each task, from its submission; 0: none
}

// Batch is a reusable set of tasks that are waited for together. One goroutine at a time may submit, reset or
// close it; the other methods may be called from any.
type Batch struct {
	engine *Engine
	inner  *multi.Batch
}

// NewBatch returns an empty batch; Close gives it back.
func (e *Engine) NewBatch(o BatchOptions) (*Batch, error) {
	inner, err := e.multi.NewBatch(o.Capacity, o.Deadline)
	if err != nil {
		return nil, err
	}
	return &Batch{engine: e, inner: inner}, nil
}

// ID returns the handle that Mooncake's verbs take.
func (b *Batch) ID() BatchID { return b.inner.ID() }

// Submit adds one task per request and starts them. A request that cannot be started becomes a task that
// has failed, and the others go on. Submit waits while the queue to a peer is full; if ctx ends meanwhile
// the queued tasks go on, the rest are Canceled, and the error is Interrupted. More requests than the batch
// has room for are refused as a whole with TooManyRequests.
func (b *Batch) Submit(ctx context.Context, rs []Request) (accepted int, err error) {
	if err := b.engine.beforeUse(ctx, rs); err != nil {
		return 0, err
	}
	return b.inner.Submit(ctx, rs)
}

// TrySubmit is Submit that never waits: it stops with TooManyRequests at the first request that finds no
// room. The first accepted requests became tasks, the others did not.
func (b *Batch) TrySubmit(rs []Request) (accepted int, err error) { return b.inner.TrySubmit(rs) }

// Wait returns when no task is unfinished: nil if all completed, else the error of the first that did not.
// If ctx ends first it returns Interrupted and the tasks go on.
func (b *Batch) Wait(ctx context.Context) error { return b.inner.Wait(ctx) }

// Done returns a channel that is closed when no task is unfinished; ask again after Reset.
func (b *Batch) Done() <-chan struct{} { return b.inner.Done() }

// Len returns the number of tasks since the last Reset.
func (b *Batch) Len() int { return b.inner.Len() }

// Status returns the state of a task; tasks count from 0 in the order of submission.
func (b *Batch) Status(task int) (Status, error) { return b.inner.Status(task) }

// Report says which path each request took and why, what was rejected, and how it ended.
func (b *Batch) Report() *Report { return b.inner.Report() }

// Cancel asks for the unfinished tasks to end soon, as Canceled.
func (b *Batch) Cancel() { b.inner.Cancel() }

// Reset empties the batch for reuse; BatchBusy while a task is unfinished. A notification that was to follow
// the tasks and has not been sent is forgotten.
func (b *Batch) Reset() error {
	if err := b.inner.Reset(); err != nil {
		return err
	}
	b.engine.notes.drop(b.ID())
	return nil
}

// Close cancels what is unfinished and returns when nothing touches local memory any more.
func (b *Batch) Close() error {
	b.engine.notes.drop(b.ID())
	return b.inner.Close()
}

// beforeUse fetches descriptions anew where the settings forbid a cache (MC_DISABLE_METACACHE).
func (e *Engine) beforeUse(ctx context.Context, rs []Request) error {
	if !e.settings.Bool("segment.cache_off") {
		return nil
	}
	seen := make(map[SegmentID]bool)
	for i := range rs {
		id := rs[i].Target
		if id == LocalSegment || seen[id] {
			continue
		}
		seen[id] = true
		if p, err := e.peers.Get(id); err == nil {
			if _, err := p.Refresh(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxSingles bounds the idle batches that Write and Read keep.
const maxSingles = 64

// Write copies n bytes of local memory to the target and returns when they are there; a peer whose protocol has no
// acknowledgement has been handed them then, which Transfer can tell. If ctx ends first, nothing touches local memory
// any more when Write returns; a context without deadline gets the transfer timeout.
func (e *Engine) Write(ctx context.Context, target SegmentID, local Addr, remote, n uint64) error {
	_, err := e.Transfer(ctx, Request{Op: OpWrite, Local: local, Len: n, Target: target, Remote: remote})
	return err
}

// Read copies n bytes of the target to local memory; see Write.
func (e *Engine) Read(ctx context.Context, target SegmentID, local Addr, remote, n uint64) error {
	_, err := e.Transfer(ctx, Request{Op: OpRead, Local: local, Len: n, Target: target, Remote: remote})
	return err
}

// Transfer runs one request to its end, as Write and Read do, and says how it ended (docs/explanation/outcomes.md).
// The error is that of the status; a request that did not become a task is Invalid.
func (e *Engine) Transfer(ctx context.Context, r Request) (Status, error) {
	invalid := Status{State: xfer.Invalid}
	if err := e.checkOpen(); err != nil {
		return invalid, err
	}
	ctx, cancel := e.bounded(ctx, r.Len)
	defer cancel()
	b, err := e.takeSingle()
	if err != nil {
		return invalid, err
	}
	defer e.giveSingle(b)
	if n, err := b.Submit(ctx, []Request{r}); n == 0 {
		return invalid, err
	}
	err = b.Wait(ctx)
	if ctx.Err() == nil || !errors.Is(err, xfer.Interrupted) {
		s, _ := b.Status(0)
		return s, err
	}
	b.Cancel()
	s := b.settle()
	if s.State != xfer.Canceled {
		return s, s.Err // it ended faster than it was canceled
	}
	f := &xfer.Fault{Code: xfer.Interrupted, Stage: xfer.StageComplete, Remote: s.Remote, Cause: context.Cause(ctx), Detail: r.Op.String() + " not finished in time"}
	if errors.Is(f.Cause, xfer.Deadline) { // the engine's limit, not the caller's
		s.State, f.Code = xfer.Timeout, xfer.Deadline
	}
	var canceled *xfer.Fault
	if errors.As(s.Err, &canceled) {
		f.Path, f.Peer = canceled.Path, canceled.Peer
	}
	s.Err = f
	return s, f
}

// settle waits for the only task of a canceled batch.
func (b *Batch) settle() Status {
	_ = b.Wait(context.Background()) // the task's error is in its status
	s, _ := b.Status(0)
	return s
}

func (e *Engine) takeSingle() (*Batch, error) {
	select {
	case b := <-e.singles:
		return b, nil
	default:
		return e.NewBatch(BatchOptions{Capacity: 1})
	}
}

func (e *Engine) giveSingle(b *Batch) {
	if b.Reset() == nil {
		select {
		case e.singles <- b:
			return
		default:
		}
	}
	b.Close()
}
