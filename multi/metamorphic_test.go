package multi

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/transport/fault"
	"github.com/moonpath-io/moonpath/transport/transporttest/meta"
	"github.com/moonpath-io/moonpath/xfer"
)

var histories = meta.Shape{Sizes: []int{1 << 10, 16 << 10, 64 << 10}, MaxLen: 64 << 10, Steps: 40, Batches: 4}

func TestMemoryIsWhatOutcomesSay(t *testing.T) {
	t.Run("a transport that is right", func(t *testing.T) {
		meta.Run(t, histories, func(uint64) (meta.System, error) { return openBoard(&mover{}, nil) })
	})
	t.Run("one that goes wrong and says so", func(t *testing.T) {
		shape := histories
		shape.Faults, shape.Failing = true, true
		meta.Run(t, shape, func(seed uint64) (meta.System, error) {
			plan, err := fault.NewPlan(seed,
				fault.ChunkRule{Do: fault.Delay, Delay: 200 * time.Microsecond, When: fault.When{Chance: 0.05}},
				fault.ChunkRule{Do: fault.Delay, Answer: true, Delay: 200 * time.Microsecond, When: fault.When{Chance: 0.05}},
				fault.ChunkRule{Do: fault.Duplicate, When: fault.When{Chance: 0.1}},
				fault.ChunkRule{Do: fault.Reorder, When: fault.When{Chance: 0.1}},
				fault.ChunkRule{Do: fault.Fail, When: fault.When{Chance: 0.03}},
				fault.ChunkRule{Do: fault.Fail, Answer: true, Ops: fault.Only(xfer.Write), Remote: xfer.Unknown, When: fault.When{Chance: 0.03}},
				fault.DialRule{Do: fault.Fail, When: fault.When{Chance: 0.2}},
			)
			if err != nil {
				return nil, err
			}
			return openBoard(&mover{}, plan)
		})
	})
}

// A transport that is wrong is found by what it does to memory, behind the whole machinery of the switchboard.
func TestWrongTransportsAreFound(t *testing.T) {
	for name, defect := range map[string]defect{"drops a byte": dropsAByte, "completes early": completesEarly, "writes after a cancellation": writesAfterCancel} {
		t.Run(name, func(t *testing.T) {
			f, run, err := histories.Find(func(uint64) (meta.System, error) { return openBoard(&mover{defect: defect}, nil) }, 1, 1000, 30*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if f == nil {
				t.Fatalf("not found in %d histories", run)
			}
			if !strings.Contains(f.What, "want 0x") && !strings.Contains(f.What, "never there") {
				t.Errorf("found, but not by its bytes: %v", &f.Violation)
			}
			t.Logf("found in history %d: %v\n%s", run, &f.Violation, f.Shortest)
		})
	}
}

// board is a switchboard with one transport, and the memory of the peer that it leads to.
type board struct {
	*Multi
	path   transport.Transport
	plan   *fault.Plan // nil: nothing goes wrong
	tables [2]*mem.Table
	memory [2][]*mem.Mapping
	dir    *directory
	peer   *segment.Peer
}

func openBoard(path *mover, plan *fault.Plan) (meta.System, error) {
	b := &board{path: path, plan: plan, tables: [2]*mem.Table{new(mem.Table), new(mem.Table)}, dir: &directory{peers: make(map[string]*segment.Desc)}}
	path.remote = b.tables[meta.Remote]
	if plan != nil {
		b.path = fault.Wrap(path, plan)
	}
	for side := range b.memory {
		for _, size := range histories.Sizes {
			m, err := mem.Map(uint64(size), true)
			if err != nil {
				return nil, errors.Join(err, b.Free())
			}
			b.memory[side] = append(b.memory[side], m)
		}
	}
	cache := segment.NewCache(b.dir)
	b.Multi = New(Config{
		Regions: b.tables[meta.Local], Peers: cache, Self: func() *segment.Desc { return &segment.Desc{Name: "self"} }, MaxQueued: 1 << 16,
		Absent: func(string) transport.Availability { return transport.Availability{State: transport.Absent} },
		Log:    slog.New(slog.DiscardHandler), Obs: obs.NewGroup(), Events: obs.NewRecorder(64),
	})
	b.publish()
	var err error
	if b.peer, err = cache.Open(context.Background(), "peer"); err == nil {
		err = b.Install(context.Background(), b.path)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close(), b.Free())
	}
	return b, nil
}

// publish describes what the peer has registered.
func (b *board) publish() {
	d := &segment.Desc{Name: "peer", Protocols: []string{moverName}}
	for r := range b.tables[meta.Remote].All() {
		d.Buffers = append(d.Buffers, segment.Buffer{Addr: uint64(r.Addr), Len: r.Len})
	}
	slices.SortFunc(d.Buffers, func(x, y segment.Buffer) int {
		if x.Addr < y.Addr {
			return -1
		}
		return 1
	})
	b.dir.set(d)
}

func (b *board) Memory(side meta.Side, slot int) []byte { return b.memory[side][slot].Bytes() }

func (b *board) Register(side meta.Side, slot int) error {
	m := b.Memory(side, slot)
	rs, err := b.tables[side].Register([]mem.Spec{{Addr: mem.AddrOf(m), Len: uint64(len(m)), Remote: true}})
	if err != nil {
		return err
	}
	b.publish()
	return b.path.Attach(context.Background(), rs)
}

func (b *board) Unregister(side meta.Side, slot int) error {
	rs, err := b.tables[side].Lookup([]xfer.Addr{mem.AddrOf(b.Memory(side, slot))})
	if err != nil {
		return err
	}
	if err := b.tables[side].Close(context.Background(), rs); err != nil {
		return err
	}
	b.tables[side].Remove(rs)
	b.publish()
	return nil
}

func (b *board) Submit(rs []meta.Request) (meta.Batch, error) {
	batch, err := b.NewBatch(len(rs), 0)
	if err != nil {
		return nil, err
	}
	requests := make([]xfer.Request, len(rs))
	for i, r := range rs {
		requests[i] = xfer.Request{Op: r.Op, Local: mem.AddrOf(b.Memory(meta.Local, r.Local.Slot)) + xfer.Addr(r.Local.Off), Len: r.Len,
			Target: b.peer.ID, Remote: uint64(mem.AddrOf(b.Memory(meta.Remote, r.Remote.Slot))) + r.Remote.Off}
	}
	if _, err := batch.Submit(context.Background(), requests); err != nil {
		return nil, errors.Join(err, batch.Close())
	}
	return batch, nil
}

func (b *board) Do(ctx context.Context, r meta.Request) error {
	batch, err := b.Submit([]meta.Request{r})
	if err != nil {
		return err
	}
	defer batch.Close()
	if err := batch.Wait(ctx); ctx.Err() == nil {
		return err
	}
	batch.Cancel()
	return batch.Wait(context.Background())
}

func (b *board) Freeze() error { b.plan.Stall(); return nil }
func (b *board) Thaw() error   { b.plan.Resume(); return nil }
func (b *board) Cut() error    { return nil } // there is no connection

func (b *board) Close() error {
	b.Multi.Close(context.Background())
	return b.path.Close(context.Background())
}

func (b *board) Free() error {
	var errs []error
	for _, side := range b.memory {
		for _, m := range side {
			errs = append(errs, m.Free())
		}
	}
	return errors.Join(errs...)
}

const moverName = "path"

// defect is how a mover is wrong.
type defect int

const (
	noDefect defect = iota
	dropsAByte
	completesEarly
	writesAfterCancel
)

// mover is a transport that copies in one goroutine for each route, a few KiB at a time, so that cancellations find
// chunks that wait.
type mover struct {
	defect defect
	remote *mem.Table
}

func (m *mover) Name() string                                { return moverName }
func (m *mover) Describe(*segment.Desc)                      {}
func (m *mover) Attach(context.Context, []*mem.Region) error { return nil }
func (m *mover) Detach(context.Context, []*mem.Region) error { return nil }
func (m *mover) Close(context.Context) error                 { return nil }
func (m *mover) Offers(_ *segment.Desc, dst []transport.Offer) []transport.Offer {
	return append(dst, fake.Usable(fake.Cost))
}

func (m *mover) Dial(_ context.Context, _ transport.Peer, work transport.Source) (transport.Route, error) {
	r := &moverRoute{mover: m, work: work, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	r.running.Go(r.run)
	return r, nil
}

type moverRoute struct {
	*mover
	work    transport.Source
	wake    chan struct{}
	quit    chan struct{}
	running sync.WaitGroup

	mu   sync.Mutex
	held []transport.Chunk // taken and not begun
	late []func()          // that a wrong mover does when it may not any more
}

func (r *moverRoute) Kick() { signal(r.wake) }

func (r *moverRoute) run() {
	for {
		select {
		case <-r.wake:
		case <-r.quit:
			return
		}
		for r.round() {
		}
	}
}

// round takes some chunks, and moves them one by one.
func (r *moverRoute) round() bool {
	var chunks [8]transport.Chunk
	n := r.work.Take(transport.Want{Bytes: 1 << 20, Piece: 4 << 10, Queues: transport.Set(transport.Small, transport.Bulk, transport.Suspect)}, chunks[:])
	r.mu.Lock()
	r.held = append(r.held, chunks[:n]...)
	for len(r.held) > 0 {
		c := r.held[0]
		r.held = r.held[1:]
		r.mu.Unlock()
		r.serve(&c)
		runtime.Gosched()
		r.mu.Lock()
	}
	late := r.late
	r.late = nil
	r.mu.Unlock()
	for _, do := range late {
		do()
	}
	return n > 0
}

func (r *moverRoute) serve(c *transport.Chunk) {
	lease, err := r.remote.Acquire(xfer.Addr(c.Remote), c.Len)
	if err != nil {
		r.work.Done([]transport.Completion{{Ref: c.Ref, Fault: &xfer.Fault{Code: xfer.Refused, Stage: xfer.StageComplete, Path: moverName}}})
		return
	}
	defer lease.Release(1)
	remote := lease.View(c.Remote-uint64(lease.Region.Addr), c.Len)
	if r.defect == completesEarly {
		memory := c.Memory()
		r.work.Done([]transport.Completion{{Ref: c.Ref}})
		runtime.Gosched()
		move(c.Op, memory, remote)
		return
	}
	if r.defect == dropsAByte && c.Len > 100 {
		move(c.Op, c.Memory()[:c.Len-1], remote)
	} else {
		move(c.Op, c.Memory(), remote)
	}
	r.work.Done([]transport.Completion{{Ref: c.Ref}})
}

func move(op xfer.Op, local, remote []byte) {
	if op == xfer.Read {
		local, remote = remote, local
	}
	_, _ = mem.Copy(remote, local)
}

func (r *moverRoute) Cancel(refs []transport.Ref) {
	var back []transport.Completion
	r.mu.Lock()
	r.held = slices.DeleteFunc(r.held, func(c transport.Chunk) bool {
		if !slices.Contains(refs, c.Ref) {
			return false
		}
		back = append(back, transport.Completion{Ref: c.Ref, Fault: &xfer.Fault{Code: xfer.Interrupted, Stage: xfer.StageComplete, Path: moverName}})
		if lease, err := r.remote.Acquire(xfer.Addr(c.Remote), c.Len); err == nil && r.defect == writesAfterCancel && c.Op == xfer.Write {
			memory, remote := slices.Clone(c.Memory()), lease.View(c.Remote-uint64(lease.Region.Addr), c.Len)
			lease.Release(1)
			r.late = append(r.late, func() { move(c.Op, memory, remote) })
		} else if err == nil {
			lease.Release(1)
		}
		return true
	})
	r.mu.Unlock()
	r.work.Done(back)
}

func (r *moverRoute) Quiesce(context.Context) transport.Quietness {
	close(r.quit)
	r.running.Wait()
	return transport.Quiet
}
