package tcp

//moonpath:goroutines

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/xfer"
)

// A peer that is frozen or cut off does not end its connections, and its kernel may go on acknowledging. A slow one looks
// the same on the data connection. Its control port, and a new data connection, tell them apart: if something is owed,
// nothing moves, and one of them gets no answer, everything on the route ends, long before the limits for a peer that
// is alive.

// suspicion is the part of tcp.silence_timeout after which the control port is asked; the rest is for its answer.
func (o *options) suspicion() time.Duration { return o.silence * 3 / 8 }

// inquire asks both ports, at most once at a time and in each period of suspicion. The watcher calls it with the
// counters of the connections that do not move.
func (r *route) inquire(now time.Time, stuck []*atomic.Uint64) {
	if now.Sub(r.inquired) < r.t.opt.suspicion() || !r.inquiring.CompareAndSwap(false, true) {
		return
	}
	r.inquired = now
	moves := r.motion(stuck)
	r.spawn(func() {
		defer r.inquiring.Store(false)
		limit := r.t.opt.silence - r.t.opt.suspicion()
		if since := now.UnixNano() - r.mute.Load(); since < int64(muteFor) {
			r.abandon(r.frozen("no byte moved, and its control port gave no answer just before", nil))
			return
		}
		ctx, cancel := context.WithTimeout(r.ctx, limit)
		defer cancel()
		desc, err := r.ask(ctx)
		switch {
		case r.ctx.Err() != nil || moves():
		case err != nil:
			if ctx.Err() != nil {
				err = nil // says no more than the words
			}
			r.abandon(r.frozen(fmt.Sprintf("no byte moved, and its control port gave no answer within %v", limit), err))
		case !desc.SameOwner(r.desc):
			r.abandon(r.wrongPeer(r.desc, nil))
		case !r.admits(ctx, desc) && r.ctx.Err() == nil && !moves():
			r.abandon(r.frozen("no byte moved, and its data port answers no new connection", nil))
		}
	})
}

// muteFor is how long a control port that gave no answer need not be asked again.
const muteFor = 5 * time.Second

// ask fetches the description, and remembers whether there was an answer.
func (r *route) ask(ctx context.Context) (*segment.Desc, error) {
	d, err := r.peer.Refresh(ctx)
	switch {
	case err == nil:
		r.mute.Store(0)
	case r.ctx.Err() == nil && ctx.Err() == context.DeadlineExceeded:
		r.mute.Store(time.Now().UnixNano())
	}
	return d, err
}

// motion returns a function that reports whether the peer has moved since: it sent something, or took more of what was
// stuck. What goes into the buffers of other connections says nothing about it.
func (r *route) motion(stuck []*atomic.Uint64) func() bool {
	received := r.received.Load()
	before := make([]uint64, len(stuck))
	for i, c := range stuck {
		before[i] = c.Load()
	}
	return func() bool {
		for i, c := range stuck {
			if c.Load() != before[i] {
				return true
			}
		}
		return r.received.Load() != received
	}
}

// admits reports whether the data port answers a new connection in time, or says no.
func (r *route) admits(ctx context.Context, d *segment.Desc) bool {
	k, err := r.connect(ctx, d)
	if err == nil {
		reset(k.conn)
		return true
	}
	return xfer.CodeOf(err) != xfer.Deadline
}

// progress grows whenever a byte moves on any connection of the route.
func (r *route) progress() (n uint64) {
	for _, l := range r.lanes {
		n += l.progress.Load()
	}
	for _, s := range r.serial {
		n += s.progress.Load()
	}
	return n
}

// abandon ends all connections and fails everything on the route. What was sent may still be executed when the peer
// goes on. What is submitted later finds out by itself whether the peer is back.
func (r *route) abandon(f *xfer.Fault) {
	r.abandoned.Store(f)
	r.t.log.Warn("peer abandoned", "peer", r.desc.Name, "error", f)
	r.giveUp(f) // first, or a connection that is free again takes the next request
	for _, l := range r.lanes {
		if l.up.Load() {
			l.stall()
		}
	}
	for _, s := range r.serial {
		s.cut()
	}
	r.giveUp(f)
}

func (r *route) frozen(detail string, cause error) *xfer.Fault {
	f := r.fault(xfer.Deadline, xfer.StageComplete, detail, cause)
	blameSilence(f)
	return f
}

func blameSilence(f *xfer.Fault) {
	f.Side, f.Next = xfer.SidePeer, "the peer is frozen or cut off: moonpath probe NAME tells when it answers again"
}

// abandonedSince returns the fault of an abandonment that came after the one before, or nil.
func (r *route) abandonedSince(before *xfer.Fault) *xfer.Fault {
	if f := r.abandoned.Load(); f != before {
		return f
	}
	return nil
}
