package fake

import (
	"cmp"
	"context"
	"slices"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// Taken describes a chunk that was taken.
type Taken struct {
	Peer   string // name in the peer's description
	Route  int    // routes count from 0 in the order of dialling
	Op     xfer.Op
	Queue  transport.Queue
	Local  xfer.Addr
	Remote uint64
	Len    uint64
}

// note records a chunk and holds it if that is its answer.
func (t *Transport) note(r *route, c *transport.Chunk, a Answer) {
	if t.options.Unrecorded && !a.Hold {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.options.Unrecorded {
		t.taken = append(t.taken, Taken{Peer: r.to.Desc().Name, Route: r.index, Op: c.Op, Queue: c.Queue,
			Local: c.Local.Region.At(c.Off), Remote: c.Remote, Len: c.Len})
	}
	if !a.Hold {
		return
	}
	t.held = append(t.held, held{route: r, chunk: *c, answer: a})
	r.holds++
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// Taken returns what was taken so far, in order; nothing if the transport is Unrecorded.
func (t *Transport) Taken() []Taken {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.taken)
}

// Held returns how many chunks are held.
func (t *Transport) Held() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.held)
}

// AwaitHeld returns when at least n chunks are held, or with the error of ctx when that ends.
func (t *Transport) AwaitHeld(ctx context.Context, n int) error {
	for {
		t.mu.Lock()
		if len(t.held) >= n {
			t.mu.Unlock()
			return nil
		}
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Attached returns the regions that are attached, by address.
func (t *Transport) Attached() []*mem.Region {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*mem.Region, 0, len(t.regions))
	for _, r := range t.regions {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *mem.Region) int { return cmp.Compare(a.Addr, b.Addr) })
	return all
}

// Routes returns how many routes were opened, and how many of them are not quiesced.
func (t *Transport) Routes() (dialled, open int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.routes), t.open()
}
