package fake

import (
	"context"
	"math"
	"slices"
	"sync/atomic"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// burst is how many chunks are taken at a time.
const burst = 64

// route is the fake's path to one peer.
type route struct {
	fake  *Transport
	index int
	to    transport.Peer
	work  transport.Source

	calls  atomic.Int32 // of pump, not served yet; the first caller works for all
	chunks [burst]transport.Chunk
	done   [burst]transport.Completion

	ended chan struct{} // closed when over
	// Guarded by the transport's lock.
	holds   int
	closing bool
	over    bool
}

// Kick implements transport.Route.
func (r *route) Kick() { r.pump() }

// pump takes and answers chunks until there is no more work or room.
func (r *route) pump() {
	if r.calls.Add(1) != 1 {
		return
	}
	for {
		calls := r.calls.Load()
		for r.round() {
		}
		r.finish()
		if r.calls.CompareAndSwap(calls, 0) {
			return
		}
	}
}

// round takes one burst; it reports whether there was anything. One goroutine at a time runs it.
func (r *route) round() bool {
	room := r.room()
	if room == 0 {
		return false
	}
	piece := r.fake.options.Piece
	if piece == 0 {
		piece = math.MaxUint64
	}
	n := r.work.Take(transport.Want{Bytes: math.MaxUint64, Piece: piece, Queues: transport.Set(transport.Small, transport.Bulk, transport.Suspect)}, r.chunks[:room])
	done := r.done[:0]
	for i := range r.chunks[:n] {
		c := &r.chunks[i]
		a := r.fake.options.Script(c)
		r.fake.note(r, c, a)
		if !a.Hold {
			done = append(done, transport.Completion{Ref: c.Ref, Fault: a.Fault, Remote: a.Remote})
		}
	}
	clear(r.chunks[:n])
	if len(done) > 0 {
		r.giveBack(done)
	}
	return n > 0
}

func (r *route) room() int {
	r.fake.mu.Lock()
	defer r.fake.mu.Unlock()
	switch {
	case r.closing:
		return 0
	case r.fake.options.Window == 0:
		return burst
	}
	return min(burst, r.fake.options.Window-r.holds)
}

// giveBack calls Done, and remembers what it gave.
func (r *route) giveBack(cs []transport.Completion) {
	if !r.fake.options.Unrecorded {
		r.fake.mu.Lock()
		for i := range cs {
			r.fake.returned = append(r.fake.returned, returned{r, cs[i].Ref})
		}
		r.fake.mu.Unlock()
	}
	r.work.Done(cs)
}

// Cancel implements transport.Route: the chunks come back at once, except those that are deaf.
func (r *route) Cancel(refs []transport.Ref) {
	out := r.fake.remove(func(h *held) bool {
		return h.route == r && !h.answer.Deaf && slices.Contains(refs, h.chunk.Ref)
	})
	r.fake.end(out, r.torn(xfer.Interrupted))
}

// Quiesce implements transport.Route. It waits for a script that is running, until ctx ends.
func (r *route) Quiesce(ctx context.Context) transport.Quietness {
	r.fake.mu.Lock()
	r.closing = true
	r.fake.mu.Unlock()
	r.pump()
	select {
	case <-r.ended:
		return transport.Quiet
	default:
	}
	select {
	case <-r.ended:
		return transport.Quiet
	case <-ctx.Done():
		return transport.Unquiet
	}
}

// finish gives back all that a closing route holds, once; the pumping goroutine calls it.
func (r *route) finish() {
	r.fake.mu.Lock()
	now := r.closing && !r.over
	r.over = r.over || now
	r.fake.mu.Unlock()
	if !now {
		return
	}
	for _, h := range r.fake.remove(func(h *held) bool { return h.route == r }) {
		r.giveBack([]transport.Completion{r.torn(xfer.Closed)(&h)})
	}
	close(r.ended)
}

func (r *route) torn(code xfer.Code) func(*held) transport.Completion {
	return func(h *held) transport.Completion {
		return h.completion(&xfer.Fault{Code: code, Stage: xfer.StageComplete, Path: r.fake.options.Name, Peer: r.to.Desc().Name, Remote: h.answer.Remote,
			Detail: "the chunk was held and given back unfinished"}, h.answer.Remote)
	}
}
