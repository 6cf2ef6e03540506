package local

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

const patience = 20 * time.Second

// engine is what a transport sees of one.
type engine struct {
	t       testing.TB
	tr      *Transport
	regions *mem.Table
	own     uint64
}

func openEngine(t testing.TB) *engine {
	t.Helper()
	e := &engine{t: t, regions: new(mem.Table), own: rand.Uint64() | 1}
	opened, err := Factory().Open(t.Context(), transport.Env{Regions: e.regions, Incarnation: e.own})
	if err != nil {
		t.Fatal(err)
	}
	e.tr = opened.(*Transport)
	t.Cleanup(func() {
		if err := e.tr.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

func (e *engine) desc() *segment.Desc {
	return &segment.Desc{Name: "peer", Ext: &segment.Extension{Incarnation: e.own}}
}

// memory registers n bytes outside the Go heap.
func (e *engine) memory(n uint64, remote bool) *mem.Region {
	e.t.Helper()
	m, err := mem.Map(n, true)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { m.Free() })
	return e.register(m, n, remote)
}

func (e *engine) register(m *mem.Mapping, n uint64, remote bool) *mem.Region {
	e.t.Helper()
	rs, err := e.regions.Register([]mem.Spec{{Addr: mem.AddrOf(m.Bytes()), Len: n, Remote: remote}})
	if err != nil {
		e.t.Fatal(err)
	}
	return rs[0]
}

type peer struct{ desc *segment.Desc }

func (p peer) Desc() *segment.Desc                            { return p.desc }
func (p peer) Refresh(context.Context) (*segment.Desc, error) { return p.desc, nil }

// dial opens a route from one engine to another.
func (e *engine) dial(to *engine) (transport.Route, *source) {
	e.t.Helper()
	s := &source{t: e.t}
	r, err := e.tr.Dial(e.t.Context(), peer{to.desc()}, s)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { r.Quiesce(context.Background()) })
	return r, s
}

// source is a queue of single chunks, cut where a taker wants.
type source struct {
	t      testing.TB
	mu     sync.Mutex
	queues [transport.Queues][]*task
	out    [64]*task // by slot
	sizes  [64]uint64
	gens   [64]uint32
}

type task struct {
	op        xfer.Op
	queue     transport.Queue
	local     *mem.Region
	off, len  uint64
	remote    uint64
	cut, left uint64
	fault     *xfer.Fault
	ended     chan struct{} // one slot
}

func newTask(op xfer.Op, local *mem.Region, off, n, remote uint64) *task {
	k := &task{op: op, local: local, off: off, len: n, remote: remote, left: n, queue: transport.Bulk, ended: make(chan struct{}, 1)}
	if n <= transport.SmallLimit {
		k.queue = transport.Small
	}
	return k
}

func (s *source) add(k *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[k.queue] = append(s.queues[k.queue], k)
}

// run queues a task, kicks and waits for its end.
func (s *source) run(r transport.Route, k *task) *xfer.Fault {
	s.t.Helper()
	s.add(k)
	r.Kick()
	select {
	case <-k.ended:
	case <-time.After(patience):
		s.t.Fatal("a task did not end")
	}
	return k.fault
}

func (s *source) Waiting() (set transport.QueueSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for q := range s.queues {
		if len(s.queues[q]) > 0 {
			set |= transport.Set(transport.Queue(q))
		}
	}
	return set
}

func (s *source) Take(w transport.Want, dst []transport.Chunk) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for q := range s.queues {
		for w.Queues.Has(transport.Queue(q)) && len(s.queues[q]) > 0 && n < len(dst) {
			k := s.queues[q][0]
			length := min(k.len-k.cut, w.Piece)
			slot := s.free()
			if n > 0 && length > w.Bytes || slot < 0 {
				return n
			}
			w.Bytes -= min(w.Bytes, length)
			s.out[slot], s.sizes[slot] = k, length
			dst[n] = transport.Chunk{Ref: transport.Ref{Slot: uint32(slot), Gen: s.gens[slot]}, Op: k.op, Queue: k.queue, Local: mem.Lease{Region: k.local},
				Off: k.off + k.cut, Remote: k.remote + k.cut, Len: length}
			n++
			if k.cut += length; k.cut == k.len {
				s.queues[q] = append(s.queues[q][:0], s.queues[q][1:]...)
			}
		}
	}
	return n
}

func (s *source) free() int {
	for i, k := range s.out {
		if k == nil {
			return i
		}
	}
	return -1
}

func (s *source) Done(cs []transport.Completion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range cs {
		k := s.out[c.Ref.Slot]
		if k == nil || s.gens[c.Ref.Slot] != c.Ref.Gen {
			s.t.Errorf("chunk %v was given back and is not out", c.Ref)
			continue
		}
		s.out[c.Ref.Slot] = nil
		s.gens[c.Ref.Slot]++
		if c.Fault != nil && k.fault == nil {
			k.fault = c.Fault
		}
		if k.left -= s.sizes[c.Ref.Slot]; k.left == 0 {
			k.ended <- struct{}{}
		}
	}
}

func (s *source) held() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.out {
		if k != nil {
			n++
		}
	}
	return n
}
