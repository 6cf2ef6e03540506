package tcp

import (
	"sync"
	"sync/atomic"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// work is a chunk with its history.
type work struct {
	chunk    transport.Chunk
	attempts uint8 // times it was sent and the connection ended without an answer to it alone
	sent     bool  // it was sent before, with others, and the connection ended without an answer
}

// backlog holds chunks that a broken connection left behind. It is bounded by what the lanes had taken.
type backlog struct {
	mu    sync.Mutex
	works []work
	size  atomic.Int32
}

func (b *backlog) empty() bool { return b.size.Load() == 0 }

func (b *backlog) put(ws ...work) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.works = append(b.works, ws...)
	b.size.Store(int32(len(b.works)))
}

// take moves up to len(dst) entries, oldest first.
func (b *backlog) take(dst []work) int {
	if b.empty() {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := copy(dst, b.works)
	b.works = b.works[:copy(b.works, b.works[n:])]
	b.size.Store(int32(len(b.works)))
	return n
}

// cancel takes the wanted chunks out and appends their completions.
func (b *backlog) cancel(wanted map[transport.Ref]bool, f *xfer.Fault, done []transport.Completion) []transport.Completion {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := b.works[:0]
	for _, w := range b.works {
		if wanted[w.chunk.Ref] {
			done = append(done, w.given(f))
		} else {
			kept = append(kept, w)
		}
	}
	b.works = kept
	b.size.Store(int32(len(kept)))
	return done
}

// fail takes all chunks out and appends their completions.
func (b *backlog) fail(f *xfer.Fault, done []transport.Completion) []transport.Completion {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.works {
		done = append(done, w.given(f))
	}
	b.works = b.works[:0]
	b.size.Store(0)
	return done
}

// given gives a chunk back that is not under way now. One that was sent before may have been executed: the
// peer let go of it when its connection ended, so nothing more will happen, but what did is not known.
func (w *work) given(f *xfer.Fault) transport.Completion {
	c := transport.Completion{Ref: w.chunk.Ref, Fault: f}
	if (w.sent || w.attempts > 0) && w.chunk.Op == xfer.Write {
		c.Remote = xfer.Unknown
	}
	return c
}
