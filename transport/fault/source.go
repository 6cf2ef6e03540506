package fault

import (
	"math/rand/v2"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// where is the place of a chunk between the engine and the transport.
type where uint8

const (
	inHand   where = iota // not passed on: dropped, delayed or stalled
	ready                 // waits to be taken by the transport, or is being taken in parts
	passed                // all of it was taken by the transport
	onTheWay              // is back, and its completion is held
)

// entry is one chunk of the engine.
type entry struct {
	chunk  transport.Chunk
	rule   *ChunkRule // nil: nothing goes wrong
	random *rand.Rand
	at     where
	runs   int         // executions that are still to begin, this one included
	began  bool        // something of it was taken by the transport
	done   bool        // executed in full at least once
	wanted bool        // by the engine; false once it was cancelled
	cut    uint64      // taken by the transport in this execution
	left   uint64      // not given back by it
	timer  *time.Timer // of a Delay
	fault  *xfer.Fault
	remote xfer.Certainty
}

// slot is one chunk that the transport has: the whole of an entry, or a part.
type slot struct {
	of  *entry
	len uint64
	gen uint32
}

// Waiting implements transport.Source.
func (r *route) Waiting() transport.QueueSet {
	r.mu.Lock()
	set := r.readySet
	r.mu.Unlock()
	return set | r.work.Waiting()
}

// Take implements transport.Source. It goes on while the plan keeps everything, because a taker that gets nothing goes
// idle.
func (r *route) Take(w transport.Want, dst []transport.Chunk) int {
	r.mu.Lock()
	n := r.takeReady(&w, dst)
	closing := r.closing
	r.mu.Unlock()
	for n == 0 && !closing {
		taken := r.work.Take(w, dst)
		if taken == 0 {
			break
		}
		var back []transport.Completion
		r.mu.Lock()
		closing = r.closing
		n, back = r.sort(dst[:taken])
		r.mu.Unlock()
		r.give(back)
	}
	return n
}

// takeReady hands out chunks that were held back before; r.mu is held.
func (r *route) takeReady(w *transport.Want, dst []transport.Chunk) (n int) {
	kept := r.ready[:0]
	for _, e := range r.ready {
		for w.Queues.Has(e.chunk.Queue) && n < len(dst) && e.cut < e.chunk.Len {
			length := min(e.chunk.Len-e.cut, w.Piece)
			if n > 0 && length > w.Bytes {
				break
			}
			w.Bytes -= min(w.Bytes, length)
			dst[n] = r.hand(e, length)
			n++
		}
		if e.cut < e.chunk.Len {
			kept = append(kept, e)
		} else {
			e.at = passed
		}
	}
	clear(r.ready[len(kept):])
	r.ready = kept
	r.noteReady()
	return n
}

func (r *route) noteReady() {
	r.readySet = 0
	for _, e := range r.ready {
		r.readySet |= transport.Set(e.chunk.Queue)
	}
}

// hand makes the next part of an entry a chunk of the transport; r.mu is held.
func (r *route) hand(e *entry, length uint64) transport.Chunk {
	var i uint32
	if n := len(r.free); n > 0 {
		i = r.free[n-1]
		r.free = r.free[:n-1]
	} else {
		i = uint32(len(r.slots))
		r.slots = append(r.slots, slot{})
	}
	r.slots[i].of, r.slots[i].len = e, length
	c := e.chunk
	c.Ref = transport.Ref{Slot: i, Gen: r.slots[i].gen}
	c.Off, c.Remote, c.Len = c.Off+e.cut, c.Remote+e.cut, length
	e.cut += length
	e.began = true
	return c
}

// sort asks the plan about chunks that were just taken: those that are passed on stay in front of cs, the others are
// held or come back. r.mu is held.
func (r *route) sort(cs []transport.Chunk) (n int, back []transport.Completion) {
	for i := range cs {
		e := &entry{chunk: cs[i], runs: 1, wanted: true, left: cs[i].Len}
		r.entries[e.chunk.Ref] = e
		if r.closing {
			back = append(back, r.end(e, r.torn(e, xfer.Closed)))
			continue
		}
		if !r.stalled {
			e.rule, e.random = first(r.plan, func(rule *ChunkRule) bool { return rule.fits(&e.chunk) }, onChunk{&e.chunk, r.to})
		}
		if e.rule != nil && !e.rule.Answer {
			switch e.rule.Do {
			case Stall:
				r.stalled = true
			case Drop:
				continue
			case Delay:
				r.later(e)
				continue
			case Fail:
				back = append(back, r.end(e, r.failed(e)))
				continue
			case Duplicate:
				e.runs = 2
			}
		}
		if r.stalled {
			r.held = append(r.held, e)
			continue
		}
		e.at = passed
		cs[n] = r.hand(e, e.chunk.Len)
		n++
	}
	return n, back
}

// Done implements transport.Source.
func (r *route) Done(cs []transport.Completion) {
	var back []transport.Completion
	again := false
	r.mu.Lock()
	for i := range cs {
		c := &cs[i]
		if int(c.Ref.Slot) >= len(r.slots) {
			continue
		}
		s := &r.slots[c.Ref.Slot]
		if s.of == nil || s.gen != c.Ref.Gen {
			continue // late, or given back twice
		}
		e, n := s.of, s.len
		s.of = nil
		s.gen++
		r.free = append(r.free, c.Ref.Slot)
		if e.fault == nil {
			e.fault = c.Fault
		}
		e.remote = max(e.remote, c.Remote)
		if e.left -= n; e.left > 0 {
			continue
		}
		if e.done && e.fault != nil {
			e.fault = r.secondFailed(e)
		}
		e.done = e.done || e.fault == nil
		if e.runs--; e.runs > 0 && e.wanted && e.fault == nil && !r.closing {
			e.cut, e.left, e.at = 0, e.chunk.Len, ready
			r.ready = append(r.ready, e)
			again = true
			continue
		}
		back = r.returned(e, back)
	}
	r.noteReady()
	back = r.reversed(back)
	r.mu.Unlock()
	r.give(back)
	if again {
		r.wake()
	}
}

// returned decides what becomes of a chunk that the transport is done with; r.mu is held.
func (r *route) returned(e *entry, back []transport.Completion) []transport.Completion {
	e.at = onTheWay
	if !e.wanted || r.closing {
		return append(back, r.end(e, r.truth(e)))
	}
	if r.stalled {
		r.answers = append(r.answers, e)
		return back
	}
	if e.rule == nil || e.fault != nil {
		return append(back, r.end(e, r.truth(e)))
	}
	switch {
	case e.rule.Do == Corrupt:
		at := e.random.Uint64N(e.chunk.Len)
		flip(&e.chunk, at, byte(1+e.random.IntN(255)))
	case e.rule.Do == Reorder:
		r.reordered = append(r.reordered, e)
		return back
	case e.rule.Answer && e.rule.Do == Drop:
		return back
	case e.rule.Answer && e.rule.Do == Delay:
		r.later(e)
		return back
	case e.rule.Answer && e.rule.Do == Fail:
		return append(back, r.end(e, r.failed(e)))
	}
	return append(back, r.end(e, r.truth(e)))
}

// flip changes one byte of a read that has completed and is not given back yet.
func flip(c *transport.Chunk, at uint64, by byte) {
	defer mem.ExpectFaults()()
	b, one := c.Memory()[at:at+1], make([]byte, 1)
	if _, err := mem.Copy(one, b); err != nil {
		return // memory that is gone cannot be corrupted
	}
	one[0] ^= by
	_, _ = mem.Copy(b, one)
}

// defaultSpan is how many completions a Reorder lets pass unless it says.
const defaultSpan = 4

// reversed adds the completions that a Reorder held, last one first, once enough of them wait or nothing else can come;
// r.mu is held.
func (r *route) reversed(back []transport.Completion) []transport.Completion {
	if len(r.reordered) == 0 || r.stalled {
		return back
	}
	span := r.reordered[0].rule.Span
	if span == 0 {
		span = defaultSpan
	}
	if len(r.reordered) <= span && (len(r.slots) > len(r.free) || len(r.ready) > 0) {
		return back
	}
	for i := len(r.reordered) - 1; i >= 0; i-- {
		e := r.reordered[i]
		back = append(back, r.end(e, r.truth(e)))
	}
	r.reordered = nil
	return back
}
