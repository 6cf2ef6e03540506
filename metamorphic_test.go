package moonpath_test

import (
	"context"
	"errors"
	"testing"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/transport/fault"
	"github.com/moonpath-io/moonpath/transport/transporttest/meta"
)

// Random histories over two engines, by each path: the bytes that a model of memory allows, and no others.
func TestMemoryIsWhatOutcomesSay(t *testing.T) {
	shape := meta.Shape{Sizes: []int{4 << 10, 64 << 10, 1 << 20}, MaxLen: 1 << 20, Batches: 4}
	for _, c := range []struct {
		name, path                    string
		front, classic, loose, faults bool
	}{
		{name: "local", path: "local"},
		// A lane of tcp receives many answers in one call, into the buffers of the reads that it expects to succeed. When
		// one of them is refused, the bytes of later answers lie in its buffer.
		{name: "tcp", path: "tcp", loose: true},
		{name: "tcp with faults", path: "tcp", front: true, loose: true, faults: true},
		{name: "tcp to a classic peer", front: true, classic: true, loose: true},
		{name: "tcp to a classic peer with faults", front: true, classic: true, loose: true, faults: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			shape := shape
			shape.LooseReads, shape.Faults = c.loose, c.faults
			meta.Run(t, shape, func(uint64) (meta.System, error) { return openDuo(shape, c.path, c.front, c.classic) })
		})
	}
}

// duo is two engines with memory, and perhaps a front between them.
type duo struct {
	engines [2]*moonpath.Engine
	memory  [2][]*mem.Mapping
	target  moonpath.SegmentID
	pin     moonpath.Pin
	front   *fault.Front // nil: none
}

// openDuo returns engines whose transfers take the given path; "" is the only one there is.
func openDuo(shape meta.Shape, path string, front, classic bool) (meta.System, error) {
	p := new(duo)
	if err := p.open(shape, path, front, classic); err != nil {
		return nil, errors.Join(err, p.Close(), p.Free())
	}
	return p, nil
}

func (p *duo) open(shape meta.Shape, path string, front, classic bool) (err error) {
	for side := range p.engines {
		for _, size := range shape.Sizes {
			m, err := mem.Map(uint64(size), true)
			if err != nil {
				return err
			}
			p.memory[side] = append(p.memory[side], m)
		}
		if p.engines[side], err = moonpath.Open(context.Background(), moonpath.Options{Host: "127.0.0.1", Environ: []string{}}); err != nil {
			return err
		}
	}
	e, name := p.engines[meta.Local], p.engines[meta.Remote].Name()
	if front {
		plan, err := fault.NewPlan(1)
		if err != nil {
			return err
		}
		if p.front, err = fault.OpenFront(context.Background(), name, plan, fault.FrontOptions{Classic: classic}); err != nil {
			return err
		}
		name = p.front.Name()
	}
	if p.target, err = e.OpenSegment(name); err != nil {
		return err
	}
	p.pin, err = e.Pin(path)
	return err
}

func (p *duo) Memory(side meta.Side, slot int) []byte { return p.memory[side][slot].Bytes() }

func (p *duo) Register(side meta.Side, slot int) error {
	m := p.memory[side][slot].Bytes()
	return p.engines[side].RegisterLocalMemory(mem.AddrOf(m), uint64(len(m)), "*", side == meta.Remote)
}

func (p *duo) Unregister(side meta.Side, slot int) error {
	return p.engines[side].UnregisterLocalMemory(mem.AddrOf(p.memory[side][slot].Bytes()))
}

func (p *duo) Submit(rs []meta.Request) (meta.Batch, error) {
	e := p.engines[meta.Local]
	b, err := e.NewBatch(moonpath.BatchOptions{Capacity: len(rs)})
	if err != nil {
		return nil, err
	}
	requests := make([]moonpath.Request, len(rs))
	for i, r := range rs {
		requests[i] = p.request(r)
	}
	if _, err := b.Submit(context.Background(), requests); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (p *duo) request(r meta.Request) moonpath.Request {
	return moonpath.Request{Op: r.Op, Pin: p.pin, Local: p.address(meta.Local, r.Local), Len: r.Len, Target: p.target,
		Remote: uint64(p.address(meta.Remote, r.Remote))}
}

func (p *duo) address(side meta.Side, at meta.Place) moonpath.Addr {
	return mem.AddrOf(p.Memory(side, at.Slot)) + moonpath.Addr(at.Off)
}

func (p *duo) Do(ctx context.Context, r meta.Request) error {
	q, e := p.request(r), p.engines[meta.Local]
	switch {
	case q.Pin != moonpath.NoPin: // Read and Write know no pins
		return p.doPinned(ctx, r)
	case r.Op == moonpath.OpWrite:
		return e.Write(ctx, q.Target, q.Local, q.Remote, q.Len)
	}
	return e.Read(ctx, q.Target, q.Local, q.Remote, q.Len)
}

func (p *duo) doPinned(ctx context.Context, r meta.Request) error {
	b, err := p.Submit([]meta.Request{r})
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Wait(ctx); ctx.Err() == nil {
		return err
	}
	b.Cancel()
	return b.Wait(context.Background())
}

func (p *duo) Freeze() error { p.front.Stall(); return nil }
func (p *duo) Thaw() error   { p.front.Resume(); return nil }
func (p *duo) Cut() error    { p.front.Cut(fault.Reset); return nil }

func (p *duo) Close() error {
	var errs []error
	for _, e := range p.engines {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	if p.front != nil {
		errs = append(errs, p.front.Close())
	}
	return errors.Join(errs...)
}

func (p *duo) Free() error {
	var errs []error
	for _, side := range p.memory {
		for _, m := range side {
			errs = append(errs, m.Free())
		}
	}
	return errors.Join(errs...)
}
