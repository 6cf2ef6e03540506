package tcp

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// peer is an opened segment; refreshing it yields next, if that is set.
type peer struct {
	mu        sync.Mutex
	desc      *segment.Desc
	next      *segment.Desc
	refreshes int
	left      time.Duration                   // that the last refresh had
	ask       func(ctx context.Context) error // what the control port does meanwhile, if set
}

func (p *peer) Desc() *segment.Desc {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.desc
}

func (p *peer) Refresh(ctx context.Context) (*segment.Desc, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refreshes++
	if deadline, ok := ctx.Deadline(); ok {
		p.left = time.Until(deadline)
	}
	if p.ask != nil {
		ask := p.ask
		p.mu.Unlock()
		err := ask(ctx)
		p.mu.Lock()
		if err != nil {
			return p.desc, err
		}
	}
	if p.next != nil {
		p.desc = p.next
	}
	return p.desc, nil
}

func (p *peer) refreshed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refreshes
}

// source is a queue of tasks without the rest of an engine. It fails the test when a chunk is given back
// that is not out.
type source struct {
	t     testing.TB
	route *route

	mu     sync.Mutex
	queues [transport.Queues][]*task
	out    map[transport.Ref]*chunk
	last   uint32
	closed bool
}

type task struct {
	op     xfer.Op
	local  *mem.Region
	off    uint64
	remote uint64
	len    uint64
	queue  transport.Queue

	cut, left uint64
	fault     *xfer.Fault
	certainty xfer.Certainty
	ended     chan struct{}
}

type chunk struct {
	task *task
	len  uint64
}

func newSource(t testing.TB) *source {
	return &source{t: t, out: make(map[transport.Ref]*chunk)}
}

// write and read make tasks; what they name is put into the queue that multi would choose.
func write(local *mem.Region, off, n, remote uint64) *task {
	return newTask(xfer.Write, local, off, n, remote)
}

func read(local *mem.Region, off, n, remote uint64) *task {
	return newTask(xfer.Read, local, off, n, remote)
}

func newTask(op xfer.Op, local *mem.Region, off, n, remote uint64) *task {
	k := &task{op: op, local: local, off: off, remote: remote, len: n, left: n, queue: transport.Bulk, ended: make(chan struct{})}
	if n <= transport.SmallLimit {
		k.queue = transport.Small
	}
	return k
}

// suspect makes a task one for memory that the peer has not published.
func (k *task) suspect() *task {
	k.queue = transport.Suspect
	return k
}

// memory is the task's local memory.
func (k *task) memory() []byte { return k.local.Bytes()[k.off : k.off+k.len] }

func (k *task) over() bool {
	select {
	case <-k.ended:
		return true
	default:
		return false
	}
}

// submit queues tasks and kicks the route.
func (s *source) submit(ks ...*task) {
	s.queue(ks...)
	s.route.Kick()
}

func (s *source) queue(ks ...*task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range ks {
		if s.closed {
			s.fail(k)
		} else {
			s.queues[k.queue] = append(s.queues[k.queue], k)
		}
	}
}

// close fails what is queued and what comes later, as an engine does before it ends a route.
func (s *source) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for q := range s.queues {
		for _, k := range s.queues[q] {
			s.fail(k)
		}
		s.queues[q] = nil
	}
}

// fail gives back what is left of a queued task.
func (s *source) fail(k *task) {
	if k.fault == nil {
		k.fault = &xfer.Fault{Code: xfer.Closed}
	}
	if k.left -= k.len - k.cut; k.left == 0 {
		close(k.ended)
	}
}

// finish waits for tasks to end.
func (s *source) finish(ks ...*task) {
	s.t.Helper()
	for i, k := range ks {
		select {
		case <-k.ended:
		default:
			within(s.t, k.ended, "task "+string(rune('0'+i%10)))
		}
	}
}

// do runs tasks that must complete.
func (s *source) do(ks ...*task) {
	s.t.Helper()
	s.submit(ks...)
	s.finish(ks...)
	for i, k := range ks {
		if k.fault != nil {
			s.t.Fatalf("task %d: %v", i, k.fault)
		}
	}
}

// Waiting implements transport.Source.
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

// Take implements transport.Source.
func (s *source) Take(w transport.Want, dst []transport.Chunk) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for q := range s.queues {
		for w.Queues.Has(transport.Queue(q)) && len(s.queues[q]) > 0 && n < len(dst) {
			k := s.queues[q][0]
			length := min(k.len-k.cut, w.Piece)
			if n > 0 && length > w.Bytes {
				return n
			}
			w.Bytes -= min(w.Bytes, length)
			s.last++
			ref := transport.Ref{Slot: s.last, Gen: 1}
			s.out[ref] = &chunk{k, length}
			dst[n] = transport.Chunk{Ref: ref, Op: k.op, Queue: k.queue, Local: mem.Lease{Region: k.local}, Off: k.off + k.cut, Remote: k.remote + k.cut, Len: length}
			n++
			if k.cut += length; k.cut == k.len {
				s.queues[q] = s.queues[q][1:]
			}
		}
	}
	return n
}

// Done implements transport.Source.
func (s *source) Done(cs []transport.Completion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range cs {
		out := s.out[c.Ref]
		if out == nil {
			s.t.Errorf("chunk %v was given back and is not out", c.Ref)
			continue
		}
		delete(s.out, c.Ref)
		k := out.task
		if c.Fault != nil && k.fault == nil {
			k.fault = c.Fault
		}
		k.certainty = max(k.certainty, c.Remote)
		if k.left -= out.len; k.left == 0 {
			close(k.ended)
		}
	}
}

// held returns how many chunks are out.
func (s *source) held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.out)
}

// refs names the chunks of tasks that are out.
func (s *source) refs(ks ...*task) (refs []transport.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref, c := range s.out {
		if slices.Contains(ks, c.task) {
			refs = append(refs, ref)
		}
	}
	return refs
}
