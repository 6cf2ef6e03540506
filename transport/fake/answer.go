package fake

import (
	"slices"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// Answer says what becomes of a chunk.
type Answer struct {
	// Hold keeps the chunk until Step, Answer, Cancel or Quiesce.
	Hold bool
	// Deaf keeps a held chunk when the engine cancels it.
	Deaf bool
	// Fault fails the chunk; nil completes it. A held chunk that is cancelled or quiesced gets a fault of its own.
	Fault *xfer.Fault
	// Remote is what is known about the peer's memory when the chunk comes back, however it does.
	Remote xfer.Certainty
}

// Done completes a chunk at once; Hold keeps it, Deaf even when it is cancelled.
var (
	Done = Answer{}
	Hold = Answer{Hold: true}
	Deaf = Answer{Hold: true, Deaf: true}
)

// Fail returns the answer that fails a chunk with that code.
func Fail(code xfer.Code, remote xfer.Certainty) Answer {
	return Answer{Remote: remote, Fault: &xfer.Fault{Code: code, Stage: xfer.StageComplete, Remote: remote, Detail: "as the script of the fake transport says"}}
}

// Always returns the script that answers every chunk alike.
func Always(a Answer) func(*transport.Chunk) Answer {
	return func(*transport.Chunk) Answer { return a }
}

// held is a chunk that was taken and not given back.
type held struct {
	route  *route
	chunk  transport.Chunk
	answer Answer
}

// completion is how a held chunk comes back.
func (h *held) completion(f *xfer.Fault, remote xfer.Certainty) transport.Completion {
	return transport.Completion{Ref: h.chunk.Ref, Fault: f, Remote: remote}
}

// Step completes up to n held chunks, those that were taken first, and takes more where there is work. It returns
// how many it completed.
func (t *Transport) Step(n int) int {
	return t.Answer(func(*transport.Chunk) bool { n--; return n >= 0 }, Done)
}

// StepAll completes what is held, and what is taken meanwhile, until nothing is. It returns how many it completed.
func (t *Transport) StepAll() (n int) {
	for {
		all := t.Answer(func(*transport.Chunk) bool { return true }, Done)
		if all == 0 {
			return n
		}
		n += all
	}
}

// Answer gives back the held chunks that match, in the order of taking, and takes more where there is work. It
// returns how many there were. match runs under the transport's lock; a.Hold and a.Deaf have no meaning here.
func (t *Transport) Answer(match func(c *transport.Chunk) bool, a Answer) int {
	return t.end(t.remove(func(h *held) bool { return match(&h.chunk) }), func(h *held) transport.Completion {
		return h.completion(a.Fault, a.Remote)
	})
}

// remove takes the held chunks that match out of the list.
func (t *Transport) remove(match func(*held) bool) (out []held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = slices.DeleteFunc(t.held, func(h held) bool {
		if !match(&h) {
			return false
		}
		out = append(out, h)
		h.route.holds--
		return true
	})
	return out
}

// end gives chunks back, those of one route in one call, and lets their routes take more.
func (t *Transport) end(out []held, how func(*held) transport.Completion) int {
	byRoute := make(map[*route][]transport.Completion)
	var order []*route
	for i := range out {
		r := out[i].route
		if byRoute[r] == nil {
			order = append(order, r)
		}
		byRoute[r] = append(byRoute[r], how(&out[i]))
	}
	for _, r := range order {
		r.giveBack(byRoute[r])
		r.pump()
	}
	return len(out)
}

// returned is a chunk that was given back.
type returned struct {
	route *route
	ref   transport.Ref
}

// Repeat gives back once more, as completed, every chunk that was ever given back: Done calls that are late and one
// too many, which an engine has to ignore. It returns how many there were.
func (t *Transport) Repeat() int {
	t.mu.Lock()
	all := slices.Clone(t.returned)
	t.mu.Unlock()
	for _, r := range all {
		r.route.work.Done([]transport.Completion{{Ref: r.ref}})
	}
	return len(all)
}
