package fake_test

import (
	"context"
	"sync"
	"testing"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/xfer"
)

// queue is a transport.Source without tasks: what is added is taken as it is, but for Want.Piece, and what is done
// is listed in order.
type queue struct {
	mu     sync.Mutex
	chunks []transport.Chunk
	done   []transport.Completion
	next   uint32
}

func (q *queue) add(cs ...transport.Chunk) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.chunks = append(q.chunks, cs...)
}

func (q *queue) Take(w transport.Want, dst []transport.Chunk) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n < len(dst) && len(q.chunks) > 0 {
		c := &q.chunks[0]
		dst[n] = *c
		dst[n].Len = min(c.Len, w.Piece)
		dst[n].Ref = transport.Ref{Slot: q.next}
		if c.Off, c.Remote, c.Len = c.Off+dst[n].Len, c.Remote+dst[n].Len, c.Len-dst[n].Len; c.Len == 0 {
			q.chunks = q.chunks[1:]
		}
		q.next++
		n++
	}
	return n
}

func (q *queue) Done(cs []transport.Completion) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done = append(q.done, cs...)
}

func (q *queue) Waiting() transport.QueueSet { return 0 }

// slots lists what is done, by slot; a failed one counts as its negated code.
func (q *queue) slots() []int {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []int
	for _, c := range q.done {
		if c.Fault != nil {
			all = append(all, -int(c.Fault.Code))
		} else {
			all = append(all, int(c.Ref.Slot))
		}
	}
	return all
}

// target is a peer that offers "path".
type target struct{ desc *segment.Desc }

func (p target) Desc() *segment.Desc                            { return p.desc }
func (p target) Refresh(context.Context) (*segment.Desc, error) { return p.desc, nil }

var peer = target{&segment.Desc{Name: "peer", Protocols: []string{"path"}}}

// open dials a route of a new fake and returns it with its source.
func open(t *testing.T, o fake.Options) (*fake.Transport, transport.Route, *queue) {
	t.Helper()
	o.Name = "path"
	path, q := fake.New(o), new(queue)
	r, err := path.Dial(t.Context(), peer, q)
	if err != nil {
		t.Fatal(err)
	}
	return path, r, q
}

// memory registers n bytes of their own table.
func memory(t *testing.T, n int) *mem.Region {
	t.Helper()
	rs, err := new(mem.Table).Register([]mem.Spec{{Bytes: make([]byte, n)}})
	if err != nil {
		t.Fatal(err)
	}
	return rs[0]
}

// writes are n chunks of 16 bytes of a region, one after the other.
func writes(r *mem.Region, n int) []transport.Chunk {
	cs := make([]transport.Chunk, n)
	for i := range cs {
		cs[i] = transport.Chunk{Op: xfer.Write, Local: mem.Lease{Region: r}, Off: uint64(16 * i), Remote: 0x1000 + uint64(16*i), Len: 16}
	}
	return cs
}
