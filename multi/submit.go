package multi

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/selector"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// submission is the state of one Submit, on the caller's stack: requests to the same peer and in the same
// memory share look-ups, and neighbours with the same route are queued by one lock.
type submission struct {
	batch *Batch

	target xfer.SegmentID
	peer   *peer
	view   *view
	buffer *segment.Buffer // that the last request lay in
	lease  mem.Lease       // one holder of the region that the last request lay in
	asked  *segment.Buffer // of which served says whether the path of this plan reaches it
	over   *plan
	served bool

	ctx  context.Context
	wait bool
	base int // index of the first task

	route      *route // of the pieces gathered
	head, tail *piece
	gathered   int
	first      int // index from base of the first task that is not queued

	ended int32 // tasks that ended here, not yet counted
}

// maxGathered is how many pieces are gathered before they are queued, so that a large submission starts
// moving while the rest is still being planned. No more are gathered than a queue has room for.
const maxGathered = 256

// Submit adds one task per request and starts them. A request that cannot be started becomes a task that
// has Failed and says why; the others are not affected. When a route's queue is full Submit waits for room;
// if ctx ends meanwhile the tasks that were queued run, the others are Canceled, and the error is
// Interrupted. accepted counts the tasks that were queued or have ended.
func (b *Batch) Submit(ctx context.Context, rs []xfer.Request) (accepted int, err error) {
	return b.submit(ctx, rs, true)
}

// TrySubmit is Submit that never waits: at the first request that finds its queue full it stops, with
// TooManyRequests. accepted requests became tasks; the others were not submitted.
func (b *Batch) TrySubmit(rs []xfer.Request) (accepted int, err error) {
	return b.submit(context.Background(), rs, false)
}

// SubmitAll is Mooncake's submission: if any request names an unknown segment (InvalidArgument) or has no
// usable transport (NotSupportedTransport), nothing is submitted.
func (b *Batch) SubmitAll(ctx context.Context, rs []xfer.Request) error {
	for i := range rs {
		p, err := b.multi.peer(rs[i].Target)
		if err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		if rs[i].Op > xfer.Write {
			return fmt.Errorf("request %d: %w", i, badOp(rs[i].Op))
		}
		if pl := p.plan(p.current(), question(&rs[i])); pl.fault != nil {
			return fmt.Errorf("request %d: %w", i, pl.fault)
		}
	}
	_, err := b.Submit(ctx, rs)
	return err
}

func question(r *xfer.Request) selector.Question {
	return selector.Question{Op: r.Op, Pin: r.Pin, Size: selector.SizeClass(r.Len), Kind: xfer.HostMem}
}

func (b *Batch) submit(ctx context.Context, rs []xfer.Request, wait bool) (accepted int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	used := b.Len()
	switch {
	case b.closed.Load() || b.multi.closed.Load():
		return 0, &xfer.Fault{Code: xfer.Closed, Stage: xfer.StageArgument, Detail: "the batch or its engine is closed"}
	case len(rs) > len(b.tasks)-used:
		return 0, &xfer.Fault{Code: xfer.TooManyRequests, Stage: xfer.StageArgument, Detail: fmt.Sprintf("%d requests for a batch with room for %d more", len(rs), len(b.tasks)-used)}
	case len(rs) == 0:
		return 0, nil
	}
	var expires int64
	if b.deadline > 0 {
		expires = time.Now().Add(b.deadline).UnixNano()
		if b.left.Load() == 0 { // else an earlier task expires first
			b.expires.Store(expires)
		}
	}
	for i := range rs {
		b.tasks[used+i].start(b, &rs[i], expires)
	}
	b.left.Add(int32(len(rs)))
	b.used.Store(int32(used + len(rs)))
	if b.deadline > 0 {
		b.multi.sweep.watch(b)
	}

	s := submission{batch: b, ctx: ctx, wait: wait, base: used}
	accepted, stopped := s.run(rs)
	for _, r := range b.routes {
		r.kick()
	}
	b.multi.count.tasks.Add(uint64(accepted))
	if stopped != nil {
		return accepted, stopped
	}
	return accepted, nil
}

// run adds the requests until one finds no room; it returns the number of tasks that stay in the batch.
func (s *submission) run(rs []xfer.Request) (accepted int, stopped *xfer.Fault) {
	b := s.batch
	for i := range rs {
		if stopped = s.add(&b.tasks[s.base+i], i); stopped != nil {
			break
		}
	}
	if stopped == nil {
		stopped = s.flush()
	}
	accepted = len(rs)
	if stopped != nil {
		accepted = s.unwind(len(rs), stopped)
	}
	if s.lease.Region != nil {
		s.lease.Release(1)
	}
	if s.ended > 0 {
		b.end(s.ended)
	}
	return accepted, stopped
}

// unwind settles the tasks that were not queued when room ran out: a submission that waits cancels them
// visibly, one that does not takes them back.
func (s *submission) unwind(n int, why *xfer.Fault) (accepted int) {
	b := s.batch
	for i := s.first; i < n; i++ {
		t := &b.tasks[s.base+i]
		if xfer.State(t.state.Load()).Terminal() {
			continue
		}
		t.releasePieces()
		t.fault, t.left = why, 0
		t.state.Store(uint32(xfer.Canceled))
		s.ended++
	}
	if s.wait {
		return n
	}
	b.used.Store(int32(s.base + s.first))
	return s.first
}

func (t *task) start(b *Batch, r *xfer.Request, expires int64) {
	t.batch, t.req, t.expires = b, *r, expires
	t.plan, t.fault, t.cause, t.remote = nil, nil, causeNone, xfer.Confirmed
	t.moved, t.chunks, t.left = 0, 0, r.Len
	t.first = piece{}
	t.state.Store(uint32(xfer.Waiting))
}

// fail ends a task that was never queued.
func (s *submission) fail(t *task, f *xfer.Fault) {
	t.fault = f
	t.left = 0
	t.state.Store(uint32(xfer.Failed))
	s.batch.multi.failed(f.Peer, f)
	s.ended++
}

func badOp(op xfer.Op) *xfer.Fault {
	return &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageArgument, Detail: fmt.Sprintf("operation %d is neither read (0) nor write (1)", op)}
}

// add plans one task and gathers its pieces; i is its index from base. It returns a fault only when there
// was no room for what had been gathered.
func (s *submission) add(t *task, i int) *xfer.Fault {
	pl, f := s.prepare(t)
	if f != nil {
		s.fail(t, f)
		return nil
	}
	if t.req.Len == 0 {
		t.state.Store(uint32(xfer.Completed))
		s.ended++
		return nil
	}
	if f := s.cut(t); f != nil {
		t.releasePieces()
		s.fail(t, f)
		return nil
	}
	full := s.gathered >= min(maxGathered, s.batch.multi.cfg.MaxQueued)
	if s.gathered > 0 && (full || s.route != pl.route) {
		if f := s.flush(); f != nil {
			return f
		}
		if full {
			s.route.kick()
		}
	}
	if s.gathered == 0 {
		s.route, s.first = pl.route, i
	}
	for p := &t.first; p != nil; p = p.more {
		if s.tail == nil {
			s.head = p
		} else {
			s.tail.next = p
		}
		s.tail = p
		s.gathered++
	}
	return nil
}

// prepare checks one request and finds its plan.
func (s *submission) prepare(t *task) (*plan, *xfer.Fault) {
	r := &t.req
	if s.peer == nil || r.Target != s.target {
		p, err := s.batch.multi.peer(r.Target)
		if err != nil {
			return nil, asFault(err)
		}
		s.target, s.peer, s.view, s.buffer = r.Target, p, p.current(), nil
	}
	if f := checkRange(s.peer, r); f != nil {
		return nil, f
	}
	t.plan = s.peer.plan(s.view, question(r))
	return t.plan, t.plan.fault
}

// checkRange refuses what no transport and no memory could serve.
func checkRange(p *peer, r *xfer.Request) *xfer.Fault {
	switch {
	case r.Op > xfer.Write:
		return badOp(r.Op)
	case r.Len > xfer.MaxLength || r.Remote > math.MaxUint64-r.Len || uint64(r.Local) > math.MaxUint64-r.Len:
		return &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageArgument, Peer: p.name,
			Detail: fmt.Sprintf("local %#x or remote %#x + %d leaves the address space", uint64(r.Local), r.Remote, r.Len)}
	}
	return nil
}

const nextLocal = "register the local buffer before the transfer"

func asFault(err error) *xfer.Fault {
	if f, ok := err.(*xfer.Fault); ok {
		return f
	}
	return &xfer.Fault{Code: xfer.CodeOf(err), Stage: xfer.StageArgument, Cause: err}
}

// cut splits a request at the borders of local regions and published remote buffers. Almost always there
// is one piece, and it is the one inside the task.
func (s *submission) cut(t *task) *xfer.Fault {
	r := &t.req
	p := &t.first
	for done := uint64(0); ; {
		local, remote, left := r.Local+xfer.Addr(done), r.Remote+done, r.Len-done
		lease, off, n, ok := s.acquire(local, left)
		if !ok {
			return &xfer.Fault{Code: xfer.AddressNotRegistered, Stage: xfer.StageArgument, Peer: s.peer.name,
				Detail: fmt.Sprintf("local memory %#x + %d is not registered", uint64(local), left), Next: nextLocal}
		}
		queue, n := s.classify(t, remote, n)
		*p = piece{task: t, local: lease, queue: queue, off: off, remote: remote, len: n}
		done += n
		if done == r.Len {
			return nil
		}
		p.more = new(piece)
		p = p.more
	}
}

// acquire leases the region that holds the byte at a for one more piece, and says how many of n bytes it holds.
func (s *submission) acquire(a xfer.Addr, n uint64) (lease mem.Lease, off, have uint64, ok bool) {
	if s.lease.Region == nil || !s.lease.Region.Contains(a, 1) {
		l, err := s.batch.multi.cfg.Regions.AcquireAt(a)
		if err != nil {
			return mem.Lease{}, 0, 0, false
		}
		if s.lease.Region != nil {
			s.lease.Release(1)
		}
		s.lease = l
	}
	s.lease.More(1)
	off = uint64(a - s.lease.Region.Addr)
	return s.lease, off, min(n, s.lease.Region.Len-off), true
}

// classify finds the queue for n bytes at remote, and how many of them belong there. Memory in no
// published buffer, or in one that the peer serves over other protocols only, is suspect: the peer may reject it.
func (s *submission) classify(t *task, remote, n uint64) (transport.Queue, uint64) {
	if s.buffer == nil || remote < s.buffer.Addr || remote-s.buffer.Addr >= s.buffer.Len {
		s.buffer = s.view.desc.Find(remote)
	}
	if s.buffer == nil {
		s.peer.refreshSoon()
		return transport.Suspect, min(n, s.view.desc.Gap(remote))
	}
	n = min(n, s.buffer.Len-(remote-s.buffer.Addr))
	if s.buffer != s.asked || t.plan != s.over {
		s.asked, s.over = s.buffer, t.plan
		s.served = served(s.view.desc, s.buffer, t.plan.path)
	}
	if !s.served {
		return transport.Suspect, n
	}
	if t.req.Len <= transport.SmallLimit {
		return transport.Small, n
	}
	return transport.Bulk, n
}

// releasePieces gives the leases of a task back.
func (t *task) releasePieces() {
	for p := &t.first; p != nil; p = p.more {
		if p.local.Region != nil {
			p.local.Release(1)
			p.local = mem.Lease{}
		}
	}
}

// flush queues what was gathered, waiting for room if the submission may.
func (s *submission) flush() *xfer.Fault {
	if s.gathered == 0 {
		return nil
	}
	s.batch.touch(s.route)
	for !s.route.push(s.head, s.gathered) {
		s.route.kick() // may make room in this goroutine
		if !s.wait {
			if s.route.push(s.head, s.gathered) {
				break
			}
			return &xfer.Fault{Code: xfer.TooManyRequests, Stage: xfer.StageArgument, Path: s.route.name, Peer: s.route.peer.name, Detail: "the queue of this path is full"}
		}
		if err := s.route.awaitRoom(s.ctx, s.batch.quit, s.gathered); err != nil {
			return &xfer.Fault{Code: xfer.Interrupted, Stage: xfer.StageArgument, Path: s.route.name, Peer: s.route.peer.name, Cause: err, Detail: "waiting for room in the queue of this path"}
		}
	}
	s.head, s.tail, s.gathered = nil, nil, 0
	return nil
}

func (b *Batch) touch(r *route) {
	if slices.Contains(b.routes, r) {
		return
	}
	b.routesMu.Lock()
	b.routes = append(b.routes, r)
	b.routesMu.Unlock()
}
