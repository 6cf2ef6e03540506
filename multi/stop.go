package multi

import (
	"context"

	"github.com/moonpath-io/moonpath/transport"
)

// cancel takes the queued pieces of a batch back and asks the transport for those that are out.
func (r *route) cancel(b *Batch, why cause) {
	var done ending
	var refs []transport.Ref
	r.mu.Lock()
	for q := range r.queues {
		r.queues[q] = r.without(r.queues[q], b, why, &done)
		if r.queues[q].head == nil {
			r.waiting.Store(r.waiting.Load() &^ uint32(transport.Set(transport.Queue(q))))
		}
	}
	for i := range r.slots {
		if p := r.slots[i].piece; p != nil && p.task.batch == b {
			p.task.stop(why)
			refs = append(refs, transport.Ref{Slot: uint32(i), Gen: r.slots[i].gen})
		}
	}
	r.roomChanged()
	r.idleChanged()
	open := r.open
	r.mu.Unlock()
	done.flush()
	if open != nil && len(refs) > 0 {
		open.Cancel(refs)
	}
}

// stop notes why the rest of a task is not wanted; the first cause stays.
func (t *task) stop(why cause) {
	if t.cause == causeNone {
		t.cause = why
	}
}

// without returns a queue's pieces that are not of b; r.mu is held.
func (r *route) without(q queue, b *Batch, why cause, done *ending) (kept queue) {
	for p := q.head; p != nil; {
		next := p.next
		p.next = nil
		switch {
		case p.task.batch == b:
			r.queued--
			p.task.stop(why)
			r.giveBack(done, p, p.len-p.cut, nil, 0)
		case kept.tail == nil:
			kept = queue{p, p}
		default:
			kept.tail.next = p
			kept.tail = p
		}
		p = next
	}
	return kept
}

// drain lets the route finish what it has, then ends it. If ctx ends first the rest is torn down.
func (r *route) drain(ctx context.Context) {
	r.mu.Lock()
	r.drains = true
	busy := r.queued > 0 || r.out() > 0
	r.mu.Unlock()
	if busy {
		r.kick()
		select {
		case <-r.idle:
		case <-ctx.Done():
		}
	}
	r.quiesce(ctx)
}

// quiesce ends the route: what is queued fails, what is out is given back by the transport.
func (r *route) quiesce(ctx context.Context) {
	r.mu.Lock()
	r.state = routeClosed
	open := r.open
	r.open = nil
	done := r.failQueued(closedFault("close"))
	r.mu.Unlock()
	done.flush()
	if open == nil {
		return
	}
	if q := open.Quiesce(ctx); q == transport.Unquiet {
		r.peer.multi.cfg.Log.Warn("path did not come to rest", "path", r.name, "peer", r.peer.name)
	}
}
