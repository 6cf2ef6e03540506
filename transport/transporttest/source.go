package transporttest

//moonpath:goroutines

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// source is the queue of one route, and its judge.
type source struct {
	x       *rig
	route   transport.Route
	waiting atomic.Uint32 // transport.QueueSet, changed under mu

	mu     sync.Mutex
	queues [transport.Queues]struct{ head, tail *task }
	slots  []slot
	free   []uint32
	taken  int // chunks, in all
	state  sourceState

	limit   *time.Timer // of again
	perTake int         // most chunks of one Take; 0 is no limit
	onEmpty func()      // called once, by a Take that found nothing, without the lock
}

type slot struct {
	task     *task
	off, len uint64
	gen      uint32
}

type sourceState uint8

const (
	sourceOpen   sourceState = iota
	sourceClosed             // what is queued fails, as in an engine that is about to end the route
	sourceOver               // the route has promised to hold nothing
)

func newSource(x *rig) *source { return &source{x: x} }

// submit queues tasks and kicks the route.
func (s *source) submit(ks ...*task) {
	s.queue(ks...)
	s.route.Kick()
}

func (s *source) queue(ks ...*task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range ks {
		k.source = s
		if s.state != sourceOpen {
			s.refuse(k)
			continue
		}
		mem.Lease{Region: k.local}.More(1)
		q := &s.queues[k.queue]
		if q.tail == nil {
			q.head = k
		} else {
			q.tail.next = k
		}
		q.tail = k
		s.waiting.Store(s.waiting.Load() | uint32(transport.Set(k.queue)))
	}
}

// refuse ends a task that nobody takes any more.
func (s *source) refuse(k *task) {
	k.left -= k.len - k.cut
	if k.fault == nil {
		k.fault = withdrawn
	}
	if k.left == 0 {
		k.ended <- struct{}{}
	}
}

// withdrawn is the suite's own fault, of requests that no transport took.
var withdrawn = &xfer.Fault{Code: xfer.Closed, Stage: xfer.StageSend, Detail: "the suite has taken it out of the queue"}

// close ends what is queued, as an engine does before it ends a route.
func (s *source) close() {
	s.mu.Lock()
	s.state = max(s.state, sourceClosed)
	s.mu.Unlock()
	s.withdraw()
}

// withdraw ends what is queued, as an engine does when it cancels.
func (s *source) withdraw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for q := range s.queues {
		for k := s.queues[q].head; k != nil; {
			next := k.next
			k.next = nil
			s.refuse(k)
			if k.left == 0 {
				mem.Lease{Region: k.local}.Release(1)
			}
			k = next
		}
		s.queues[q].head, s.queues[q].tail = nil, nil
	}
	s.waiting.Store(0)
}

// Waiting implements transport.Source.
func (s *source) Waiting() transport.QueueSet { return transport.QueueSet(s.waiting.Load()) }

// Take implements transport.Source.
func (s *source) Take(w transport.Want, dst []transport.Chunk) int {
	s.mu.Lock()
	n := s.take(w, dst)
	var then func()
	if n == 0 {
		then, s.onEmpty = s.onEmpty, nil
	}
	s.mu.Unlock()
	if then != nil {
		then()
	}
	return n
}

func (s *source) take(w transport.Want, dst []transport.Chunk) (n int) {
	if w.Piece == 0 {
		s.x.fail("Take was called with a Piece of 0, which no chunk fits")
		return 0
	}
	for q := transport.Small; q < transport.Queues; q++ {
		for w.Queues.Has(q) && s.queues[q].head != nil && n < len(dst) {
			k := s.queues[q].head
			length := min(k.len-k.cut, w.Piece)
			if n > 0 && length > w.Bytes || s.perTake > 0 && n == s.perTake {
				return n
			}
			w.Bytes -= min(w.Bytes, length)
			dst[n] = transport.Chunk{Ref: s.slot(k, length), Op: k.op, Queue: q, Local: mem.Lease{Region: k.local},
				Off: k.off + k.cut, Remote: k.remote + k.cut, Len: length}
			n++
			s.taken++
			if k.cut += length; k.cut == k.len {
				s.pop(q)
			}
		}
	}
	return n
}

func (s *source) pop(q transport.Queue) {
	list := &s.queues[q]
	first := list.head
	list.head, first.next = first.next, nil
	if list.head == nil {
		list.tail = nil
		s.waiting.Store(s.waiting.Load() &^ uint32(transport.Set(q)))
	}
}

func (s *source) slot(k *task, n uint64) transport.Ref {
	var i uint32
	if free := len(s.free); free > 0 {
		i, s.free = s.free[free-1], s.free[:free-1]
	} else {
		i, s.slots = uint32(len(s.slots)), append(s.slots, slot{})
	}
	o := &s.slots[i]
	o.task, o.off, o.len = k, k.cut, n
	return transport.Ref{Slot: i, Gen: o.gen}
}

// Done implements transport.Source.
func (s *source) Done(cs []transport.Completion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range cs {
		c := &cs[i]
		if int(c.Ref.Slot) >= len(s.slots) {
			s.x.fail("Done was called for chunk %v, which was never handed out", c.Ref)
			continue
		}
		o := &s.slots[c.Ref.Slot]
		if o.task == nil || o.gen != c.Ref.Gen {
			s.x.fail("Done was called for chunk %v, which is not out; it was given back before, or never handed out", c.Ref)
			continue
		}
		if s.state == sourceOver {
			s.x.fail("a chunk of the %s came back after Quiesce had returned", o.task)
		}
		s.end(c)
	}
}

func (s *source) end(c *transport.Completion) {
	o := &s.slots[c.Ref.Slot]
	k := o.task
	if !k.quick {
		if wrong := k.givenBack(o.off, o.len, c); wrong != "" {
			s.x.fail("%s", wrong)
		}
	}
	s.free = append(s.free, c.Ref.Slot)
	if c.Fault != nil && k.fault == nil {
		k.fault = c.Fault
	}
	k.known = max(k.known, c.Remote)
	if k.left -= o.len; k.left == 0 {
		mem.Lease{Region: k.local}.Release(1)
		k.ended <- struct{}{}
	}
	o.task = nil
	o.gen++
}

// out returns how many chunks are out, and of which tasks the first few are.
func (s *source) out() (n int, of []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.slots {
		if k := s.slots[i].task; k != nil {
			if n++; n <= 3 {
				of = append(of, k.String())
			}
		}
	}
	return n, of
}

// everTaken returns how many chunks were handed out.
func (s *source) everTaken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// refs names the chunks of tasks that are out.
func (s *source) refs(ks ...*task) (refs []transport.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := make(map[*task]bool, len(ks))
	for _, k := range ks {
		wanted[k] = true
	}
	for i := range s.slots {
		if wanted[s.slots[i].task] {
			refs = append(refs, transport.Ref{Slot: uint32(i), Gen: s.slots[i].gen})
		}
	}
	return refs
}

// await waits until tasks have ended.
func (s *source) await(ks ...*task) {
	s.x.Helper()
	limit := time.NewTimer(s.x.opt.Patience)
	defer limit.Stop()
	for i, k := range ks {
		select {
		case <-k.ended:
		case <-limit.C:
			n, of := s.out()
			s.x.fatal("within %v %d of %d requests did not end; the first is a %s; %d chunks are out %v, waiting in queues %03b",
				s.x.opt.Patience, len(ks)-i, len(ks), k, n, of, s.Waiting())
		}
	}
}

// do runs tasks that have to complete.
func (s *source) do(ks ...*task) {
	s.x.Helper()
	s.submit(ks...)
	s.await(ks...)
	s.completed(ks...)
}

// completed checks that tasks which have ended are done.
func (s *source) completed(ks ...*task) {
	s.x.Helper()
	for _, k := range ks {
		if k.fault != nil {
			s.x.fatal("the %s failed: %v", k, k.fault)
		}
	}
}

// quiesce ends the route as an engine does, and checks what it promises.
func (s *source) quiesce(ctx context.Context) transport.Quietness {
	s.x.Helper()
	s.close()
	promise := make(chan transport.Quietness, 1)
	go func() { promise <- s.route.Quiesce(ctx) }()
	select {
	case q := <-promise:
		s.promised(q)
		return q
	case <-time.After(s.x.opt.Patience):
		s.x.fatal("Quiesce did not return within %v", s.x.opt.Patience)
		return transport.Unquiet
	}
}

func (s *source) promised(q transport.Quietness) {
	s.x.Helper()
	if q == transport.Unquiet {
		return
	}
	if n, of := s.out(); n > 0 {
		s.x.fail("Quiesce returned %q and %d chunks are still out, of %v", q, n, of)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = sourceOver
	if q == transport.Quiet {
		for _, k := range s.x.tasks {
			if k.source == s {
				k.settled()
			}
		}
	}
}

// over reports whether the route has promised to hold nothing.
func (s *source) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == sourceOver
}
