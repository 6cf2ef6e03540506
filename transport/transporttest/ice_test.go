package transporttest

import (
	"bytes"
	"sync"
	"time"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// ice lets a transport behave as if its target were frozen: what is taken meanwhile is held, and moved at the thaw.
type ice struct {
	stalls bool // what is held comes back by itself after a while

	thawed  func(*tap, *transport.Chunk) *xfer.Fault // instead of moving
	haunts  bool                                     // writes at the thaw what was given back before
	patient bool                                     // never mind stalls

	iceMu  sync.Mutex
	frozen bool
	ghosts []func()
}

type heldChunk struct {
	chunk transport.Chunk
	data  []byte // of a write
}

// stallLimit is short for a test, and long for what happens between a freeze and a thaw.
const stallLimit = 150 * time.Millisecond

func (b *broken) freeze() {
	b.iceMu.Lock()
	defer b.iceMu.Unlock()
	b.frozen = true
}

func (b *broken) thaw() {
	b.iceMu.Lock()
	b.frozen = false
	ghosts := b.ghosts
	b.ghosts = nil
	b.iceMu.Unlock()
	for _, write := range ghosts {
		write()
	}
	for _, r := range b.routes {
		for _, h := range r.tap.release(func(*transport.Chunk) bool { return true }) {
			c := transport.Completion{Ref: h.chunk.Ref}
			switch {
			case b.thawed != nil:
				c.Fault = b.thawed(r.tap, &h.chunk)
			case h.chunk.Op == xfer.Read:
				copy(h.chunk.Memory(), b.far(&h.chunk))
			default:
				copy(b.far(&h.chunk), h.data)
			}
			r.tap.Done([]transport.Completion{c})
		}
		r.Kick()
	}
}

// freezes takes all that there is and holds it, while the target is frozen.
func (s *tap) freezes(w transport.Want, dst []transport.Chunk) bool {
	s.b.iceMu.Lock()
	defer s.b.iceMu.Unlock()
	if !s.b.frozen {
		return false
	}
	for n := s.Source.Take(w, dst); n > 0; n = s.Source.Take(w, dst) {
		for _, c := range dst[:n] {
			h := heldChunk{chunk: c}
			if c.Op == xfer.Write {
				h.data = bytes.Clone(c.Memory())
			}
			s.held = append(s.held, h)
		}
	}
	if s.b.stalls && !s.b.patient && len(s.held) > 0 {
		time.AfterFunc(stallLimit, func() { s.giveBack(xfer.Deadline, func(*transport.Chunk) bool { return true }) })
	}
	return true
}

// release lets go of held chunks.
func (s *tap) release(wanted func(*transport.Chunk) bool) (out []heldChunk) {
	s.b.iceMu.Lock()
	defer s.b.iceMu.Unlock()
	kept := s.held[:0:0]
	for _, h := range s.held {
		if wanted(&h.chunk) {
			out = append(out, h)
		} else {
			kept = append(kept, h)
		}
	}
	s.held = kept
	return out
}

// giveBack fails held chunks, which have not moved.
func (s *tap) giveBack(code xfer.Code, wanted func(*transport.Chunk) bool) {
	for _, h := range s.release(wanted) {
		if s.b.haunts && h.chunk.Op == xfer.Write {
			there := s.b.far(&h.chunk)
			s.b.iceMu.Lock()
			s.b.ghosts = append(s.b.ghosts, func() { copy(there, h.data) })
			s.b.iceMu.Unlock()
		}
		s.Done([]transport.Completion{{Ref: h.chunk.Ref, Fault: &xfer.Fault{Code: code, Stage: xfer.StageComplete, Path: s.b.Transport.Name(), Peer: s.peer}}})
	}
}
