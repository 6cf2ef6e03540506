package tcp

//moonpath:goroutines

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// route is the set of connections to one peer.
type route struct {
	t      *Transport
	peer   transport.Peer
	desc   *segment.Desc // of the engine that the route was opened to
	source transport.Source
	lanes  []*lane   // pipelined; none towards version 1
	serial []*serial // one request at a time

	ctx    context.Context
	cancel context.CancelFunc
	lost   atomic.Bool // a connection has ended since it was last asked who the peer is
	doubt  atomic.Bool // we ended a connection, and a write that was sent on it may still happen

	spawnMu sync.Mutex // orders spawn and Quiesce
	running sync.WaitGroup

	inquired  time.Time                  // when the control port was asked whether the peer lives; the watcher's
	inquiring atomic.Bool                // it is being asked
	abandoned atomic.Pointer[xfer.Fault] // why everything failed at that time, the last time

	// moves is held for reading while chunks move from the source or between backlogs, lanes and the serial
	// connection, so that Cancel, which holds it for writing, finds each of them somewhere.
	moves sync.RWMutex

	again    backlog       // to be sent again on a lane
	retry    backlog       // sent before without an answer: to be sent again in a small window, see trial.go
	window   atomic.Int64  // the size of that
	alone    backlog       // to be sent again by itself
	received atomic.Uint64 // calls that brought bytes, on any connection
	mute     atomic.Int64  // when the control port gave no answer, Unix nanoseconds; 0 if it has answered since
}

var _ transport.Route = (*route)(nil)

// Dial implements transport.Transport. The first connection is made here, so that a peer that cannot be
// reached is known at once; the others follow as work needs them.
func (t *Transport) Dial(ctx context.Context, to transport.Peer, work transport.Source) (transport.Route, error) {
	r := &route{t: t, peer: to, desc: to.Desc(), source: work}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	first, err := r.dial(ctx)
	if err != nil {
		r.cancel()
		return nil, err
	}
	group := t.env.Obs.Group(r.desc.Name)
	if first.version == 2 {
		r.makeLanes(first.drains, group)
	} else {
		r.makeSerial(group)
	}
	if !t.add(r) {
		r.cancel()
		reset(first.conn)
		return nil, &xfer.Fault{Code: xfer.Closed, Stage: xfer.StageDial, Path: Name, Peer: r.desc.Name, Detail: "the transport is closed"}
	}
	r.start(&first)
	return r, nil
}

// makeLanes makes the lanes of a version 2 peer: the first for small requests, the others for bulk, and
// one serial connection for suspects, which is opened when there are some.
func (r *route) makeLanes(drains bool, group *obs.Group) {
	n := r.t.opt.lanes
	for i := range n {
		queues := transport.Set(transport.Bulk)
		switch {
		case n == 1:
			queues = transport.Set(transport.Small, transport.Bulk)
		case i == 0:
			queues = transport.Set(transport.Small)
		}
		r.lanes = append(r.lanes, newLane(r, i, queues, group.Group(fmt.Sprintf("lane %d", i))))
	}
	var suspects transport.QueueSet
	if !drains { // else a lane survives a rejection and takes them itself
		suspects = transport.Set(transport.Suspect)
	}
	r.serial = []*serial{newSerial(r, suspects, group.Group("serial"))}
}

// start begins work on the first connection.
func (r *route) start(first *link) {
	if len(r.lanes) > 0 {
		r.lanes[0].start(first)
		first = nil
	}
	for _, s := range r.serial {
		given := first
		first = nil
		r.spawn(func() { s.run(given) })
	}
}

// spawn runs f in a goroutine that Quiesce waits for; it does nothing once the route is over.
func (r *route) spawn(f func()) {
	r.spawnMu.Lock()
	defer r.spawnMu.Unlock()
	if r.ctx.Err() == nil {
		r.running.Go(f)
	}
}

// makeSerial makes the connections of a version 1 peer, which knows no pipelining that we could rely on.
func (r *route) makeSerial(group *obs.Group) {
	every := transport.Set(transport.Small, transport.Bulk, transport.Suspect)
	for i := range r.t.opt.lanes {
		r.serial = append(r.serial, newSerial(r, every, group.Group(fmt.Sprintf("serial %d", i))))
	}
}

// Kick implements transport.Route. Lanes that are idle and connected write in the caller's goroutine; what
// is left wakes the next one, and at last one that is not connected yet.
func (r *route) Kick() {
	waiting := r.source.Waiting()
	if r.resends() {
		waiting |= transport.Set(transport.Bulk)
	}
	if waiting == 0 {
		return
	}
	for _, s := range r.serial {
		if waiting&s.queues != 0 {
			s.rouse()
		}
	}
	if len(r.lanes) == 0 {
		return
	}
	bulk := r.lanes[len(r.lanes)-max(len(r.lanes)-1, 1):]
	if waiting&r.lanes[0].queues != 0 {
		first := r.lanes[0]
		// Two submitters that share a lane wait for each other's answers; with a lane each they do not.
		shared := first.idle() || !r.offerIdle(bulk, transport.Small)
		if shared && !r.offer(first, transport.Small) && (!first.idle() || first.failed.Load()) {
			r.spread(bulk, transport.Small)
		}
	}
	if waiting.Has(transport.Bulk) || waiting.Has(transport.Suspect) {
		r.spread(bulk, transport.Bulk)
	}
}

// offer makes a lane look for work and reports whether nothing is left in the queue. What is left while the
// lane has nothing under way is being taken by whoever is at it.
func (r *route) offer(l *lane, q transport.Queue) bool {
	l.kick()
	return !r.waits(q)
}

// offerIdle offers what waits in a queue to the lanes that are connected and idle, until nothing is left or one is
// found that does not want it, and so is about to be busy; it reports whether that was so.
func (r *route) offerIdle(lanes []*lane, q transport.Queue) bool {
	for _, l := range lanes {
		if l.up.Load() && l.idle() && (r.offer(l, q) || l.idle()) {
			return true
		}
	}
	return false
}

// spread offers what waits in a queue to lanes in order: idle ones, one that is not connected yet, and those
// that have room besides what they are doing.
func (r *route) spread(lanes []*lane, q transport.Queue) {
	if r.offerIdle(lanes, q) {
		return
	}
	for _, l := range lanes {
		if !l.up.Load() && !l.failed.Load() {
			l.kick()
			break
		}
	}
	for _, l := range lanes {
		if l.up.Load() && r.offer(l, q) {
			return
		}
	}
	if r.bulkFailed() {
		r.lanes[0].kick()
	}
}

// bulkFailed reports whether none of the lanes for bulk can be connected, so that the first has to do.
func (r *route) bulkFailed() bool {
	for _, l := range r.lanes[1:] {
		if !l.failed.Load() {
			return false
		}
	}
	return true
}

func (r *route) waits(q transport.Queue) bool {
	return r.source.Waiting().Has(q) || q == transport.Bulk && r.resends()
}

// resends reports whether something waits to be sent again on a lane.
func (r *route) resends() bool { return !r.again.empty() || !r.retry.empty() }

// Cancel implements transport.Route.
func (r *route) Cancel(refs []transport.Ref) {
	wanted := make(map[transport.Ref]bool, len(refs))
	for _, ref := range refs {
		wanted[ref] = true
	}
	var done []transport.Completion
	r.moves.Lock()
	done = r.again.cancel(wanted, r.interrupted(), done)
	done = r.retry.cancel(wanted, r.interrupted(), done)
	done = r.alone.cancel(wanted, r.interrupted(), done)
	for _, l := range r.lanes {
		done = l.cancel(wanted, done)
	}
	for _, s := range r.serial {
		s.cancel(wanted)
	}
	r.moves.Unlock()
	r.source.Done(done)
}

// Quiesce implements transport.Route: every connection is closed in order where nothing is owed, and reset
// where something is.
func (r *route) Quiesce(ctx context.Context) transport.Quietness {
	quiet := r.rest(ctx)
	r.spawnMu.Lock()
	r.cancel()
	r.spawnMu.Unlock()
	for _, l := range r.lanes {
		l.close()
	}
	for _, s := range r.serial {
		s.close()
	}
	r.running.Wait()
	r.giveUp(r.fault(xfer.Closed, xfer.StageClose, "the path is closed", nil))
	r.t.remove(r)
	if r.doubt.Load() {
		quiet = transport.LocalQuiet
	}
	return quiet
}

// rest waits until the peer has answered for everything, ctx ends, or the peer stands still.
func (r *route) rest(ctx context.Context) transport.Quietness {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	moved, since := r.progress(), time.Now()
	for !r.idle() {
		select {
		case now := <-tick.C:
			if n := r.progress(); n != moved {
				moved, since = n, now
			} else if now.Sub(since) >= standstill {
				return transport.LocalQuiet
			}
		case <-ctx.Done():
			return transport.LocalQuiet
		}
	}
	return transport.Quiet
}

// idle reports whether the peer owes nothing.
func (r *route) idle() bool {
	for _, l := range r.lanes {
		if !l.idle() {
			return false
		}
	}
	for _, s := range r.serial {
		if s.active.Load() {
			return false
		}
	}
	return true
}

// giveUp fails what waits to be sent again, and what is queued, when no connection can be had.
func (r *route) giveUp(f *xfer.Fault) {
	var done []transport.Completion
	done = r.again.fail(f, done)
	done = r.retry.fail(f, done)
	done = r.alone.fail(f, done)
	r.source.Done(done)
	if f.Code == xfer.Closed {
		return // the engine fails what is still queued
	}
	var chunks [64]transport.Chunk
	want := transport.Want{Bytes: 1 << 62, Piece: 1 << 62, Queues: transport.Set(transport.Small, transport.Bulk, transport.Suspect)}
	for {
		n := r.source.Take(want, chunks[:])
		if n == 0 {
			return
		}
		done = done[:0]
		for i := range chunks[:n] {
			done = append(done, transport.Completion{Ref: chunks[i].Ref, Fault: f})
		}
		r.source.Done(done)
	}
}

// interrupted is the fault of what was canceled.
func (r *route) interrupted() *xfer.Fault {
	return r.fault(xfer.Interrupted, xfer.StageSend, "canceled", nil)
}

func (r *route) fault(code xfer.Code, stage xfer.Stage, detail string, cause error) *xfer.Fault {
	return &xfer.Fault{Code: code, Stage: stage, Path: Name, Peer: r.desc.Name, Detail: detail, Cause: cause}
}
