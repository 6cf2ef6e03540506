package transporttest

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/local"
	"github.com/moonpath-io/moonpath/xfer"
)

// broken is the local transport with something in between; with no field set it is sound.
type broken struct {
	transport.Transport
	target *mem.Table

	name          func() string
	offers        func(*transport.Offer)
	overwrites    bool
	describe      func(*segment.Desc)
	dial          func(context.Context) error
	close         func(context.Context) error
	hidden        bool // Waiting says that there is nothing
	take          func(*tap, transport.Want, []transport.Chunk) int
	done          func(*tap, []transport.Completion)
	before, after func(*broken, *transport.Chunk) // each Done
	kick          func(*tapRoute)
	cancel        func(*tapRoute, []transport.Ref)
	quiesce       func(*tapRoute, context.Context) transport.Quietness

	attach, detach func([]*mem.Region) error
	failing        atomic.Int32 // a code that everything comes back with
	ice

	release chan struct{} // closed when the case is over
	leaked  []*os.File
	garbage *[64]byte
	routes  []*tapRoute
}

// pair puts a defect into the initiator, and into the target's description.
func (b *broken) pair(put func(*broken)) Pair {
	end := func(name string) End {
		regions, own := new(mem.Table), rand.Uint64()|1
		return End{local.Open(transport.Env{Regions: regions, Incarnation: own}), regions, segment.Desc{Name: name, Ext: &segment.Extension{Incarnation: own}}}
	}
	here, there := end("here"), end("there")
	b.Transport, b.target = here.Transport, there.Regions
	if put != nil {
		put(b)
	}
	here.Transport = b
	kill := func() { _ = there.Transport.Close(context.Background()) }
	restart := func() End { kill(); return end("there") }
	return Pair{Initiator: here, Target: End{&described{there.Transport, b}, there.Regions, there.Draft}, Kill: kill, Freeze: b.freeze, Thaw: b.thaw, Restart: restart}
}

// described is the target of a broken initiator.
type described struct {
	transport.Transport
	by *broken
}

func (d *described) Describe(s *segment.Desc) {
	d.Transport.Describe(s)
	if d.by.describe != nil {
		d.by.describe(s)
	}
}

func (b *broken) Name() string {
	if b.name != nil {
		return b.name()
	}
	return b.Transport.Name()
}

func (b *broken) Offers(to *segment.Desc, dst []transport.Offer) []transport.Offer {
	if b.overwrites {
		dst = dst[:0]
	}
	n := len(dst)
	dst = b.Transport.Offers(to, dst)
	for i := n; i < len(dst) && b.offers != nil; i++ {
		b.offers(&dst[i])
	}
	return dst
}

func (b *broken) Attach(ctx context.Context, rs []*mem.Region) error {
	if b.attach != nil {
		return b.attach(rs)
	}
	return b.Transport.Attach(ctx, rs)
}

func (b *broken) Detach(ctx context.Context, rs []*mem.Region) error {
	if b.detach != nil {
		return b.detach(rs)
	}
	return b.Transport.Detach(ctx, rs)
}

func (b *broken) Close(ctx context.Context) error {
	if b.close != nil {
		return b.close(ctx)
	}
	return b.Transport.Close(ctx)
}

func (b *broken) Dial(ctx context.Context, to transport.Peer, work transport.Source) (transport.Route, error) {
	if b.dial != nil {
		if err := b.dial(ctx); err != nil {
			return nil, err
		}
	}
	s := &tap{Source: work, b: b, peer: to.Desc().Name, chunks: make(map[transport.Ref]transport.Chunk)}
	r, err := b.Transport.Dial(ctx, to, s)
	if err != nil {
		return nil, err
	}
	t := &tapRoute{Route: r, tap: s, b: b}
	b.routes = append(b.routes, t)
	return t, nil
}

// far is the target's memory of a chunk, or nil.
func (b *broken) far(c *transport.Chunk) []byte {
	lease, err := b.target.Acquire(xfer.Addr(c.Remote), c.Len)
	if err != nil {
		return nil
	}
	defer lease.Release(1)
	return lease.View(c.Remote-uint64(lease.Region.Addr), c.Len)
}

// destination is where a chunk's bytes go.
func (b *broken) destination(c *transport.Chunk) []byte {
	if c.Op == xfer.Read {
		return c.Memory()
	}
	return b.far(c)
}

// fails lets everything fail from now on.
func (b *broken) fails(code xfer.Code) { b.failing.Store(int32(code)) }

// faults changes each fault.
func (b *broken) faults(change func(*xfer.Fault)) {
	b.done = func(s *tap, cs []transport.Completion) {
		for _, c := range cs {
			if c.Fault != nil {
				change(c.Fault)
			}
		}
		s.Source.Done(cs)
	}
}

// ration lets a kick lead to n chunks at most.
func (b *broken) ration(n int64) {
	var left atomic.Int64
	b.kick = func(r *tapRoute) { left.Store(n); r.Route.Kick() }
	b.rationed(&left)
}

// wear lets a transport take n chunks in its life.
func (b *broken) wear(n int64) {
	var left atomic.Int64
	left.Store(n)
	b.rationed(&left)
}

func (b *broken) rationed(left *atomic.Int64) {
	b.take = func(s *tap, w transport.Want, dst []transport.Chunk) int {
		n := s.Source.Take(w, dst[:min(int64(len(dst)), max(0, left.Load()))])
		left.Add(-int64(n))
		return n
	}
}

// keepOne keeps one chunk back until the case is over.
func (b *broken) keepOne() {
	var kept atomic.Bool
	b.done = func(s *tap, cs []transport.Completion) {
		if kept.CompareAndSwap(false, true) {
			cs = cs[1:]
		}
		s.Source.Done(cs)
	}
}

// tap sits between the source and the transport.
type tap struct {
	transport.Source
	b    *broken
	peer string
	seen atomic.Int64 // calls of Done

	mu     sync.Mutex
	chunks map[transport.Ref]transport.Chunk // that are out
	held   []heldChunk                       // guarded by the ice
}

func (s *tap) Take(w transport.Want, dst []transport.Chunk) int {
	if s.freezes(w, dst) {
		return 0
	}
	if s.b.take != nil {
		return s.b.take(s, w, dst)
	}
	n := s.Source.Take(w, dst)
	if s.b.before != nil || s.b.after != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range dst[:n] {
			s.chunks[c.Ref] = c
		}
	}
	return n
}

func (s *tap) Waiting() transport.QueueSet {
	if s.b.hidden {
		return 0
	}
	return s.Source.Waiting()
}

func (s *tap) Done(cs []transport.Completion) {
	for i := range cs {
		if code := s.b.failing.Load(); code != 0 {
			cs[i].Fault = &xfer.Fault{Code: xfer.Code(code)}
		}
	}
	if s.b.done != nil {
		s.b.done(s, cs)
		return
	}
	s.each(cs, s.b.before)
	s.Source.Done(cs)
	s.each(cs, s.b.after)
}

func (s *tap) each(cs []transport.Completion, f func(*broken, *transport.Chunk)) {
	if f == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range cs {
		chunk := s.chunks[c.Ref]
		f(s.b, &chunk)
	}
}

// tapRoute sits between the engine and the route.
type tapRoute struct {
	transport.Route
	tap   *tap
	b     *broken
	kicks int
	over  atomic.Bool
}

func (r *tapRoute) Kick() {
	if r.b.kick != nil {
		r.b.kick(r)
		return
	}
	r.Route.Kick()
}

func (r *tapRoute) Cancel(refs []transport.Ref) {
	if r.b.cancel != nil {
		r.b.cancel(r, refs)
		return
	}
	r.tap.giveBack(xfer.Interrupted, func(c *transport.Chunk) bool { return slices.Contains(refs, c.Ref) })
	r.Route.Cancel(refs)
}

func (r *tapRoute) Quiesce(ctx context.Context) transport.Quietness {
	if r.b.quiesce != nil {
		return r.b.quiesce(r, ctx)
	}
	defer r.over.Store(true)
	defer r.tap.giveBack(xfer.Closed, func(*transport.Chunk) bool { return true })
	return r.Route.Quiesce(ctx)
}
