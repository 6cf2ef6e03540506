package multi

import (
	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/xfer"
)

// ending gathers what a burst of completions ends, so that neighbours share the counting: leases of one
// region are given back together, tasks of one batch are counted down together.
type ending struct {
	lease  mem.Lease
	leases int64
	batch  *Batch
	tasks  int32
}

// task ends t: all its bytes are given back. The lock of its route is held.
func (e *ending) task(t *task) {
	for p := &t.first; p != nil; p = p.more {
		e.release(p.local)
		p.local = mem.Lease{}
	}
	b := t.batch
	if b != e.batch {
		e.flush()
		e.batch = b
	}
	e.tasks++
	s := t.verdict()
	if s != xfer.Completed {
		b.multi.failed(t.plan.route.peer.name, t.fault)
	}
	t.state.Store(uint32(s))
}

func (e *ending) release(l mem.Lease) {
	if l.Region != e.lease.Region {
		e.releaseAll()
		e.lease = l
	}
	e.leases++
}

func (e *ending) releaseAll() {
	if e.leases > 0 {
		e.lease.Release(e.leases)
		e.leases = 0
	}
}

// flush ends what was gathered. Tasks and batches may be reused by their owner from then on.
func (e *ending) flush() {
	if e.tasks > 0 {
		// Leases first: once the batch is over, its memory may be unregistered without waiting.
		e.releaseAll()
		e.batch.end(e.tasks)
		e.tasks = 0
	}
}

// verdict is the terminal state of a task whose bytes are all back, and completes its fault.
func (t *task) verdict() xfer.State {
	if t.moved == t.req.Len {
		return xfer.Completed
	}
	if t.remote == xfer.Unconfirmed {
		t.remote = xfer.Unknown // some bytes may be there, and the task is not complete
	}
	switch t.cause {
	case causeCancel:
		t.fault = t.ended(xfer.Interrupted, "canceled by the caller")
		return xfer.Canceled
	case causeDeadline:
		t.fault = t.ended(xfer.Deadline, "the deadline of the batch ran out")
		return xfer.Timeout
	}
	if t.fault.Remote != t.remote { // another chunk knew less; and a fault may be shared by tasks
		f := *t.fault
		f.Remote = t.remote
		t.fault = &f
	}
	return xfer.Failed
}

func (t *task) ended(code xfer.Code, detail string) *xfer.Fault {
	return &xfer.Fault{Code: code, Stage: xfer.StageComplete, Path: t.plan.path, Peer: t.plan.route.peer.name, Remote: t.remote, Detail: detail}
}
