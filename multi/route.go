package multi

//moonpath:goroutines

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// route is one transport's path to one peer, with the queue that its takers pull from. It is the
// transport.Source of that path.
type route struct {
	peer *peer
	via  transport.Transport
	name string

	waiting atomic.Uint32 // transport.QueueSet, changed under mu

	mu     sync.Mutex // taken after a peer's; never held over a call into the transport
	state  routeState
	why    *xfer.Fault     // of a closed route
	dial   *dial           // while dialling
	open   transport.Route // nil until dialled
	queues [transport.Queues]queue
	queued int // pieces in all queues
	slots  []slot
	free   []uint32 // slots not in use

	room    chan struct{} // one slot: the queue has room again
	waiters int           // submissions that wait for room
	idle    chan struct{} // one slot: nothing is queued or out; sent while draining
	drains  bool
}

type routeState uint8

const (
	routeIdle    routeState = iota // not dialled, or the last attempt failed
	routeDialing                   // a connector is at work
	routeOpen
	routeClosed
)

// dial is one attempt to open a route.
type dial struct {
	ctx    context.Context
	cancel context.CancelFunc
	over   chan struct{}
}

func newDial(ctx context.Context) *dial {
	d := &dial{over: make(chan struct{})}
	d.ctx, d.cancel = context.WithCancel(ctx)
	return d
}

func (d *dial) end() {
	d.cancel()
	close(d.over)
}

// queue is a list of pieces.
type queue struct{ head, tail *piece }

// slot is one chunk that is out; gen changes with every use, so that a late Done is recognised.
type slot struct {
	piece *piece
	len   uint64
	gen   uint32
}

// maxOut bounds the chunks of one route that are out at once: lanes × window, with room to spare.
const maxOut = 1 << 15

func newRoute(p *peer, via transport.Transport) *route {
	return &route{peer: p, via: via, name: via.Name(), room: make(chan struct{}, 1), idle: make(chan struct{}, 1)}
}

// push queues n pieces that hang on head, or none if there is no room for them. A route that is closed
// fails them at once.
func (r *route) push(head *piece, n int) bool {
	r.mu.Lock()
	if r.state == routeClosed {
		done := ending{}
		for p := head; p != nil; {
			next := p.next
			r.giveBack(&done, p, p.len, r.why, xfer.Confirmed)
			p = next
		}
		r.roomChanged() // for those who waited, too
		r.mu.Unlock()
		done.flush()
		return true
	}
	if !r.fits(n) {
		r.mu.Unlock()
		return false
	}
	for p := head; p != nil; {
		next := p.next
		p.next = nil
		q := &r.queues[p.queue]
		if q.tail == nil {
			q.head = p
		} else {
			q.tail.next = p
		}
		q.tail = p
		r.waiting.Store(r.waiting.Load() | uint32(transport.Set(p.queue)))
		p = next
	}
	r.queued += n
	r.roomChanged() // somebody who wants less may fit, too
	var d *dial
	if r.state == routeIdle {
		d = newDial(r.peer.multi.ctx)
		r.state, r.dial = routeDialing, d
	}
	r.mu.Unlock()
	if d != nil && !r.peer.multi.spawn(func() { r.connect(d) }) {
		r.refuse(d, closedFault(xfer.StageDial))
	}
	return true
}

// fits reports whether n pieces may be queued; more than there is ever room for may if nothing else is.
// r.mu is held.
func (r *route) fits(n int) bool {
	return r.queued == 0 || r.queued+n <= r.peer.multi.cfg.MaxQueued
}

// kick tells the transport that there is work; while the route is being dialled the connector does.
func (r *route) kick() {
	r.mu.Lock()
	open := r.open
	r.mu.Unlock()
	if open != nil {
		open.Kick()
	}
}

// awaitRoom returns when a submission may try to push n pieces again, or why it should not.
func (r *route) awaitRoom(ctx context.Context, quit <-chan struct{}, n int) error {
	r.mu.Lock()
	if r.fits(n) { // since push
		r.mu.Unlock()
		return nil
	}
	r.waiters++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.waiters--
		r.mu.Unlock()
	}()
	select {
	case <-r.room:
		return nil
	case <-quit:
		return xfer.Closed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connect dials the route. What is queued waits meanwhile, and fails if the dial does.
func (r *route) connect(d *dial) {
	m := r.peer.multi
	open, err := r.dialInTurn(d.ctx)
	if err != nil {
		m.cfg.Log.Debug("path not opened", "path", r.name, "peer", r.peer.name, "error", err)
		r.refuse(d, asFault(err))
		return
	}
	defer d.end()
	r.mu.Lock()
	if r.state == routeClosed {
		r.mu.Unlock()
		open.Quiesce(m.ctx)
		return
	}
	r.state, r.open, r.dial = routeOpen, open, nil
	unwanted := r.unwanted()
	r.mu.Unlock()
	m.cfg.Events.Record(obs.Route, r.peer.name, "opened over "+r.name)
	if len(unwanted) > 0 {
		open.Cancel(unwanted)
	}
	open.Kick()
}

// unwanted lists what is out of tasks that were canceled: a transport may take work before Dial returns, and
// could not be told then. r.mu is held.
func (r *route) unwanted() (refs []transport.Ref) {
	for i := range r.slots {
		if p := r.slots[i].piece; p != nil && p.task.cause != causeNone {
			refs = append(refs, transport.Ref{Slot: uint32(i), Gen: r.slots[i].gen})
		}
	}
	return refs
}

// dialInTurn waits until few enough others dial.
func (r *route) dialInTurn(ctx context.Context) (transport.Route, error) {
	turns := r.peer.multi.dialing
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
		return r.via.Dial(ctx, r.peer.seg, r)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refuse fails everything queued after a dial that failed; the next push dials anew.
func (r *route) refuse(d *dial, f *xfer.Fault) {
	defer d.end()
	f = r.unreachable(f)
	if f.Retry == xfer.Refresh {
		r.peer.refreshSoon()
	}
	r.peer.multi.cfg.Events.RecordLike(obs.Route, r.peer.name, f.Code.Name(), f)
	r.mu.Lock()
	if r.state == routeDialing {
		r.state, r.dial = routeIdle, nil
	}
	done := r.failQueued(f)
	r.mu.Unlock()
	done.flush()
}

// failQueued gives back all that is queued; r.mu is held.
func (r *route) failQueued(f *xfer.Fault) (done ending) {
	for q := range r.queues {
		for p := r.queues[q].head; p != nil; {
			next := p.next
			r.giveBack(&done, p, p.len-p.cut, f, xfer.Confirmed)
			p = next
		}
		r.queues[q] = queue{}
	}
	r.queued = 0
	r.waiting.Store(0)
	r.roomChanged()
	r.idleChanged()
	return done
}

// Waiting implements transport.Source.
func (r *route) Waiting() transport.QueueSet { return transport.QueueSet(r.waiting.Load()) }

// Take implements transport.Source.
func (r *route) Take(w transport.Want, dst []transport.Chunk) int {
	if r.Waiting()&w.Queues == 0 {
		return 0
	}
	var done ending
	n := 0
	r.mu.Lock()
	for q := transport.Small; q < transport.Queues && n < len(dst); q++ {
		if w.Queues.Has(q) {
			n += r.takeFrom(q, &w, dst[n:], n > 0, &done)
		}
	}
	r.roomChanged()
	r.idleChanged()
	r.mu.Unlock()
	done.flush()
	return n
}

// takeFrom hands out chunks of one queue; r.mu is held.
func (r *route) takeFrom(q transport.Queue, w *transport.Want, dst []transport.Chunk, some bool, done *ending) (n int) {
	list := &r.queues[q]
	for n < len(dst) && list.head != nil {
		p := list.head
		t := p.task
		if t.fault != nil { // the rest of the task is not wanted any more
			r.pop(q)
			r.giveBack(done, p, p.len-p.cut, nil, xfer.Confirmed)
			continue
		}
		length := min(p.len-p.cut, w.Piece)
		if (some || n > 0) && length > w.Bytes {
			break
		}
		ref, ok := r.slot(p, length)
		if !ok {
			break
		}
		w.Bytes -= min(w.Bytes, length)
		dst[n] = transport.Chunk{Ref: ref, Op: t.req.Op, Queue: q, Local: p.local, Off: p.off + p.cut, Remote: p.remote + p.cut, Len: length}
		n++
		t.chunks++
		p.cut += length
		if p.cut == p.len {
			r.pop(q)
		}
	}
	return n
}

func (r *route) pop(q transport.Queue) {
	list := &r.queues[q]
	list.head = list.head.next
	if list.head == nil {
		list.tail = nil
		r.waiting.Store(r.waiting.Load() &^ uint32(transport.Set(q)))
	}
	r.queued--
}

func (r *route) slot(p *piece, length uint64) (transport.Ref, bool) {
	var i uint32
	if n := len(r.free); n > 0 {
		i = r.free[n-1]
		r.free = r.free[:n-1]
	} else {
		if len(r.slots) == maxOut {
			return transport.Ref{}, false
		}
		i = uint32(len(r.slots))
		r.slots = append(r.slots, slot{})
	}
	s := &r.slots[i]
	s.piece, s.len = p, length
	return transport.Ref{Slot: i, Gen: s.gen}, true
}

// Done implements transport.Source.
func (r *route) Done(cs []transport.Completion) {
	var done ending
	var given, located *xfer.Fault // often all of a burst have the same
	stale := false
	r.mu.Lock()
	for i := range cs {
		c := &cs[i]
		if int(c.Ref.Slot) >= len(r.slots) {
			continue
		}
		s := &r.slots[c.Ref.Slot]
		if s.piece == nil || s.gen != c.Ref.Gen {
			continue // late, or given back twice
		}
		p, n, f := s.piece, s.len, c.Fault
		s.piece = nil
		s.gen++
		r.free = append(r.free, c.Ref.Slot)
		if f == nil {
			p.task.moved += n
		} else {
			stale = stale || f.Retry == xfer.Refresh
			if f != given {
				given, located = f, r.unreachable(f)
			}
			f = located
		}
		r.giveBack(&done, p, n, f, c.Remote)
	}
	r.idleChanged()
	r.mu.Unlock()
	if stale {
		r.peer.refreshSoon()
	}
	done.flush()
}

func (r *route) out() int { return len(r.slots) - len(r.free) }

// giveBack counts n bytes of a piece as over; r.mu is held. The first fault of a task is the one it keeps.
func (r *route) giveBack(done *ending, p *piece, n uint64, f *xfer.Fault, remote xfer.Certainty) {
	t := p.task
	if f != nil && t.fault == nil {
		t.fault = r.blamed(f, p)
	}
	t.remote = max(t.remote, remote)
	t.left -= n
	if t.left == 0 {
		done.task(t)
	}
}

// roomChanged wakes a submission that waits for room; r.mu is held.
func (r *route) roomChanged() {
	if r.waiters > 0 && r.fits(1) {
		signal(r.room)
	}
}

// idleChanged tells a drain that nothing is queued or out any more; r.mu is held.
func (r *route) idleChanged() {
	if r.drains && r.queued == 0 && r.out() == 0 {
		signal(r.idle)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
