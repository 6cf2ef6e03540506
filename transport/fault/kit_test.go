package fault_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/transport/fault"
	"github.com/moonpath-io/moonpath/xfer"
)

const patience = 20 * time.Second

// engine is a transport.Source that watches the contract: what is given back must be out.
type engine struct {
	t testing.TB

	mu     sync.Mutex
	queued []transport.Chunk
	out    map[uint32]transport.Chunk
	next   uint32
	back   []completion
	more   chan struct{} // one slot
}

// completion is one chunk that came back.
type completion struct {
	slot   uint32
	fault  *xfer.Fault
	remote xfer.Certainty
}

func newEngine(t testing.TB) *engine {
	return &engine{t: t, out: make(map[uint32]transport.Chunk), more: make(chan struct{}, 1)}
}

func (e *engine) Waiting() transport.QueueSet {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queued) > 0 {
		return transport.Set(transport.Small)
	}
	return 0
}

func (e *engine) Take(w transport.Want, dst []transport.Chunk) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for n < len(dst) && len(e.queued) > 0 {
		c := &e.queued[0]
		dst[n] = *c
		dst[n].Len = min(c.Len, w.Piece)
		dst[n].Ref = transport.Ref{Slot: e.next, Gen: 7}
		e.out[e.next] = dst[n]
		e.next++
		c.Off, c.Remote, c.Len = c.Off+dst[n].Len, c.Remote+dst[n].Len, c.Len-dst[n].Len
		if c.Len == 0 {
			e.queued = e.queued[1:]
		}
		n++
	}
	return n
}

func (e *engine) Done(cs []transport.Completion) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range cs {
		if _, ok := e.out[c.Ref.Slot]; !ok || c.Ref.Gen != 7 {
			e.t.Errorf("chunk %v came back and was not out", c.Ref)
		}
		delete(e.out, c.Ref.Slot)
		e.back = append(e.back, completion{c.Ref.Slot, c.Fault, c.Remote})
	}
	select {
	case e.more <- struct{}{}:
	default:
	}
}

// await returns the first n completions in order.
func (e *engine) await(n int) []completion {
	e.t.Helper()
	deadline := time.After(patience)
	for {
		e.mu.Lock()
		back := append([]completion(nil), e.back...)
		e.mu.Unlock()
		if len(back) >= n {
			return back
		}
		select {
		case <-e.more:
		case <-deadline:
			e.t.Fatalf("%d of %d chunks came back", len(back), n)
		}
	}
}

// refs names what is out.
func (e *engine) refs() (rs []transport.Ref) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for slot := range e.out {
		rs = append(rs, transport.Ref{Slot: slot, Gen: 7})
	}
	return rs
}

// rig is a peer with memory, and a decorated route to it.
type rig struct {
	*engine
	path   *fake.Transport
	route  transport.Route
	plan   *fault.Plan
	local  *mem.Region
	remote []byte
	writes [][2]uint64 // as the peer executed them: offset and length; under the engine's lock
}

const size = 1 << 10

type target struct{ desc *segment.Desc }

func (p target) Desc() *segment.Desc                            { return p.desc }
func (p target) Refresh(context.Context) (*segment.Desc, error) { return p.desc, nil }

func newPlan(t testing.TB, seed uint64, rules ...fault.Rule) *fault.Plan {
	t.Helper()
	p, err := fault.NewPlan(seed, rules...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// open returns a rig whose peer really moves bytes. window bounds what its transport takes.
func open(t testing.TB, o fake.Options, rules ...fault.Rule) *rig {
	t.Helper()
	g := &rig{engine: newEngine(t), plan: newPlan(t, 1, rules...), remote: make([]byte, size)}
	rs, err := new(mem.Table).Register([]mem.Spec{{Bytes: make([]byte, size)}})
	if err != nil {
		t.Fatal(err)
	}
	g.local = rs[0]
	for i := range size {
		g.local.Bytes()[i], g.remote[i] = byte(i), byte(0x80+i/16)
	}
	next := o.Script
	o.Name = "path"
	o.Script = func(c *transport.Chunk) fake.Answer {
		if c.Op == xfer.Write {
			copy(g.remote[c.Remote:c.Remote+c.Len], c.Memory())
			g.mu.Lock()
			g.writes = append(g.writes, [2]uint64{c.Remote, c.Len})
			g.mu.Unlock()
		} else {
			copy(c.Memory(), g.remote[c.Remote:])
		}
		if next != nil {
			return next(c)
		}
		return fake.Done
	}
	g.path = fake.New(o)
	g.route, err = fault.Wrap(g.path, g.plan).Dial(t.Context(), target{&segment.Desc{Name: "peer", Protocols: []string{"path"}}}, g.engine)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.finish)
	return g
}

// finish quiesces the route: every chunk has to be back then.
func (g *rig) finish() {
	g.route.Quiesce(context.Background())
	if rs := g.refs(); len(rs) > 0 {
		g.t.Errorf("%d chunks are out after Quiesce", len(rs))
	}
	if n := g.path.Held(); n > 0 {
		g.t.Errorf("the transport holds %d chunks after Quiesce", n)
	}
}

// submit queues n chunks of 16 bytes one after the other, and kicks.
func (g *rig) submit(op xfer.Op, n int) {
	for i := range uint64(n) {
		g.chunk(op, 16*i, 16)
	}
	g.route.Kick()
}

func (g *rig) chunk(op xfer.Op, at, n uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queued = append(g.queued, transport.Chunk{Op: op, Local: mem.Lease{Region: g.local}, Off: at, Remote: at, Len: n})
}

// executed lists the writes that the peer has executed.
func (g *rig) executed() [][2]uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.writes)
}

func slotsOf(cs []completion) (ns []uint32) {
	for _, c := range cs {
		ns = append(ns, c.slot)
	}
	return ns
}

func codes(cs []completion) (all []xfer.Code) {
	for _, c := range cs {
		if c.fault == nil {
			all = append(all, xfer.OK)
		} else {
			all = append(all, c.fault.Code)
		}
	}
	return all
}
