package multi

import (
	"context"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// cancel takes back the queued pieces of those tasks of a batch that expire by then, and asks the transport
// for those that are out.
func (r *route) cancel(b *Batch, why cause, expire int64) {
	var done ending
	var refs []transport.Ref
	r.mu.Lock()
	for q := range r.queues {
		r.queues[q] = r.without(r.queues[q], b, why, expire, &done)
		if r.queues[q].head == nil {
			r.waiting.Store(r.waiting.Load() &^ uint32(transport.Set(transport.Queue(q))))
		}
	}
	for i := range r.slots {
		if p := r.slots[i].piece; p != nil && p.task.batch == b && p.task.expires <= expire {
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

// without returns a queue's pieces that stay; r.mu is held.
func (r *route) without(q queue, b *Batch, why cause, expire int64, done *ending) (kept queue) {
	for p := q.head; p != nil; {
		next := p.next
		p.next = nil
		switch {
		case p.task.batch == b && p.task.expires <= expire:
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

// drain lets the route finish what it has, then ends it, because of why. If ctx ends first the rest is torn
// down.
func (r *route) drain(ctx context.Context, why *xfer.Fault) {
	r.mu.Lock()
	r.drains = true
	busy := r.queued > 0 || r.out() > 0
	r.mu.Unlock()
	if busy {
		select {
		case <-r.idle:
		case <-ctx.Done():
		}
	}
	r.quiesce(ctx, why)
}

// quiesce ends the route: what is queued fails with why, what is out is given back by the transport, and a
// dial is broken off.
func (r *route) quiesce(ctx context.Context, why *xfer.Fault) {
	r.mu.Lock()
	r.state, r.why = routeClosed, why
	open, dial := r.open, r.dial
	r.open, r.dial = nil, nil
	done := r.failQueued(why)
	r.mu.Unlock()
	done.flush()
	if dial != nil {
		dial.cancel()
		select {
		case <-dial.over:
		case <-ctx.Done():
		}
	}
	if open == nil {
		return
	}
	if q := open.Quiesce(ctx); q == transport.Unquiet {
		r.peer.multi.cfg.Log.Warn("path did not come to rest", "path", r.name, "peer", r.peer.name)
	}
}
