package postbox

//moonpath:goroutines

import (
	"context"
	"sync"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// window is how many letters of one route are under way at once.
const window = 16

// pieceBytes is the largest chunk, so that others get their turn.
const pieceBytes = 1 << 20

// route is the way to one target.
type route struct {
	target  *Transport
	peer    string
	work    transport.Source
	wake    chan struct{}             // one slot: there may be work
	answers chan transport.Completion // has room for every letter that is out
	quit    chan struct{}
	once    sync.Once
	ended   chan struct{}

	chunks [window]transport.Chunk // the carrier's, here so that nothing is allocated for a chunk
	done   [1]transport.Completion
}

var _ transport.Route = (*route)(nil)

func newRoute(target *Transport, peer string, work transport.Source) *route {
	r := &route{target: target, peer: peer, work: work, wake: make(chan struct{}, 1), answers: make(chan transport.Completion, window),
		quit: make(chan struct{}), ended: make(chan struct{})}
	go r.carry()
	return r
}

// Kick implements transport.Route. It leaves a token, which a carrier that is about to rest will find.
func (r *route) Kick() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Cancel implements transport.Route. A letter cannot be called back, and is answered soon.
func (r *route) Cancel([]transport.Ref) {}

// Quiesce implements transport.Route. It returns early only if ctx ends before the clerk has answered; then nothing is
// promised.
func (r *route) Quiesce(ctx context.Context) transport.Quietness {
	r.once.Do(func() { close(r.quit) })
	select {
	case <-r.ended:
		return transport.Quiet
	case <-ctx.Done():
		return transport.Unquiet
	}
}

// carry takes chunks while there is room, posts them, and gives back what is answered.
func (r *route) carry() {
	defer close(r.ended)
	out := 0
	for {
		if n := r.take(r.chunks[:window-out]); n > 0 {
			out += r.post(r.chunks[:n])
			continue
		}
		select {
		case c := <-r.answers:
			out--
			r.giveBack(c)
		case <-r.wake:
		case <-r.quit:
			for ; out > 0; out-- {
				r.giveBack(<-r.answers)
			}
			return
		}
	}
}

func (r *route) take(dst []transport.Chunk) int {
	select {
	case <-r.quit:
		return 0
	default:
		return r.work.Take(transport.Want{Bytes: window * pieceBytes, Piece: pieceBytes, Queues: transport.Set(transport.Small, transport.Bulk, transport.Suspect)}, dst)
	}
}

// post hands letters to the clerk and returns how many he took. The others were never sent, so their faults say that the
// target's memory is as it was.
func (r *route) post(chunks []transport.Chunk) (posted int) {
	for _, c := range chunks {
		var f *xfer.Fault
		select {
		case r.target.box <- letter{c, r}:
			posted++
			continue
		case <-r.target.closed:
			f = fault(xfer.Endpoint, xfer.StageSend, r.peer, "its engine has left this process")
		case <-r.quit:
			f = fault(xfer.Closed, xfer.StageSend, r.peer, "the route is closed")
		}
		r.giveBack(transport.Completion{Ref: c.Ref, Fault: f})
	}
	return posted
}

func (r *route) giveBack(c transport.Completion) {
	r.done[0] = c
	r.work.Done(r.done[:])
}
