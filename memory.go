package moonpath

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/xfer"
)

// BufferEntry is one buffer of RegisterLocalMemoryBatch.
type BufferEntry struct {
	Addr   Addr
	Length uint64
}

// AllocOptions say what kind of memory Alloc makes.
type AllocOptions struct {
	Populate  bool   // touch every page now, so that no transfer pays for it
	LocalOnly bool   // peers may not reach it
	Location  string // "cpu:N", or "" for anywhere
}

// RegisterOptions say how a buffer is registered.
type RegisterOptions struct {
	LocalOnly bool   // peers may not reach it
	Location  string // "cpu:N", or "" for anywhere
}

// Memory is a registered buffer that the engine or Go owns.
type Memory struct {
	engine  *Engine
	region  *mem.Region
	mapping *mem.Mapping // nil for memory that Register pinned
}

// Bytes returns the memory; it is valid until Free.
func (m *Memory) Bytes() []byte { return m.region.Bytes() }

// At returns the address of the byte at off.
func (m *Memory) At(off uint64) Addr { return m.region.At(off) }

// Len returns the length in bytes.
func (m *Memory) Len() uint64 { return m.region.Len }

// Free unregisters the memory, waiting for transfers that use it, and gives it back.
func (m *Memory) Free() error {
	if err := m.engine.UnregisterLocalMemory(m.region.Addr); err != nil {
		return err
	}
	if m.engine.memory.remove(m) && m.mapping != nil {
		return m.mapping.Free()
	}
	return nil
}

// memoryTable remembers what Alloc made, so that Close can free it.
type memoryTable struct {
	mu  sync.Mutex
	all map[*Memory]struct{}
}

func (t *memoryTable) add(m *Memory) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = make(map[*Memory]struct{})
	}
	t.all[m] = struct{}{}
}

// remove reports whether m was there: it is then the caller's to free.
func (t *memoryTable) remove(m *Memory) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, found := t.all[m]
	delete(t.all, m)
	return found
}

// freeAll unmaps the memory of a closed engine: nothing uses it any more.
func (t *memoryTable) freeAll() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for m := range t.all {
		if m.mapping != nil {
			errs = append(errs, m.mapping.Free())
		}
	}
	t.all = nil
	return errors.Join(errs...)
}

// Alloc makes n bytes of zeroed memory outside the Go heap, in huge pages if they can be had, and registers it.
func (e *Engine) Alloc(n uint64, o AllocOptions) (*Memory, error) {
	m, err := mem.Map(n, o.Populate)
	if err != nil {
		return nil, err
	}
	rs, err := e.register([]mem.Spec{{Addr: mem.AddrOf(m.Bytes()), Len: n, Location: o.Location, Remote: !o.LocalOnly}})
	if err != nil {
		return nil, errors.Join(err, m.Free())
	}
	memory := &Memory{engine: e, region: rs[0], mapping: m}
	e.memory.add(memory)
	return memory, nil
}

// Register registers a Go buffer. It is pinned until Free: the collector leaves it where it is.
func (e *Engine) Register(b []byte, o RegisterOptions) (*Memory, error) {
	if b == nil {
		b = []byte{} // refused with a reason below
	}
	rs, err := e.register([]mem.Spec{{Bytes: b, Location: o.Location, Remote: !o.LocalOnly}})
	if err != nil {
		return nil, err
	}
	memory := &Memory{engine: e, region: rs[0]}
	e.memory.add(memory)
	return memory, nil
}

// RegisterLocalMemory registers memory that Go does not manage and that the caller keeps mapped until it is
// unregistered. It may not overlap another registration (AddressOverlapped). location is "cpu:N" or "*".
// Memory that is not remotely accessible is not published, and peers are refused.
func (e *Engine) RegisterLocalMemory(addr Addr, length uint64, location string, remoteAccessible bool) error {
	_, err := e.register([]mem.Spec{{Addr: addr, Len: length, Location: location, Remote: remoteAccessible}})
	return err
}

// RegisterLocalMemoryBatch registers all buffers, remotely accessible, and publishes once; or none of them.
func (e *Engine) RegisterLocalMemoryBatch(buffers []BufferEntry, location string) error {
	specs := make([]mem.Spec, len(buffers))
	for i, b := range buffers {
		specs[i] = mem.Spec{Addr: b.Addr, Len: b.Length, Location: location, Remote: true}
	}
	_, err := e.register(specs)
	return err
}

func (e *Engine) register(specs []mem.Spec) ([]*mem.Region, error) {
	if err := e.checkOpen(); err != nil {
		return nil, err
	}
	e.installMu.Lock()
	defer e.installMu.Unlock()
	rs, err := e.regions.Register(specs)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	if err := e.introduce(ctx, rs); err != nil {
		err = errors.Join(err, e.regions.Close(ctx, rs))
		e.regions.Remove(rs)
		return nil, err
	}
	return rs, nil
}

// introduce makes regions known to the transports and to peers, or to nobody.
func (e *Engine) introduce(ctx context.Context, rs []*mem.Region) error {
	installed := e.multi.Installed()
	for i, t := range installed {
		if err := t.Attach(ctx, rs); err != nil {
			for _, attached := range installed[:i] {
				err = errors.Join(err, attached.Detach(ctx, rs))
			}
			return err
		}
	}
	err := e.publish(ctx)
	if err == nil {
		err = e.checkOpen() // Close may have looked for registrations before these were there
	}
	if err != nil {
		for _, t := range installed {
			err = errors.Join(err, t.Detach(ctx, rs))
		}
	}
	return err
}

// UnregisterLocalMemory ends a registration by its start address. Peers are refused from now on; transfers
// that use the memory are waited for, up to the transfer timeout, then the error is BatchBusy and the memory
// stays registered. An address at which no registration starts is AddressNotRegistered.
func (e *Engine) UnregisterLocalMemory(addr Addr) error {
	return e.UnregisterLocalMemoryBatch([]Addr{addr})
}

// UnregisterLocalMemoryBatch ends all the registrations and publishes once; or none, if one address is
// unknown or named twice.
func (e *Engine) UnregisterLocalMemoryBatch(addrs []Addr) error {
	if err := e.checkOpen(); err != nil {
		return err
	}
	ctx, cancel := e.bounded(context.Background(), 0)
	defer cancel()
	rs, err := e.regions.Lookup(addrs)
	if err == nil {
		err = e.regions.Close(ctx, rs)
	}
	if err != nil {
		if closed := e.checkOpen(); closed != nil {
			return closed // Close is unregistering the memory
		}
		return err
	}
	var errs []error
	for _, t := range e.multi.Installed() {
		errs = append(errs, t.Detach(ctx, rs))
	}
	e.regions.Remove(rs)
	return errors.Join(append(errs, e.publish(ctx))...)
}

// release ends all registrations of an engine whose transports are closed, and unmaps what Alloc made. Memory
// that is still used keeps all mapped.
func (e *Engine) release(ctx context.Context) error {
	var errs []error
	for r := range e.regions.All() {
		one := []*mem.Region{r}
		err := e.regions.Close(ctx, one)
		switch {
		case err == nil:
			e.regions.Remove(one)
		case !errors.Is(err, xfer.AddressNotRegistered): // else another call is about to remove it
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return e.memory.freeAll()
}

// bounded adds the transfer timeout, plus a nanosecond per byte, to a context without deadline, as
// Mooncake's synchronous calls do.
func (e *Engine) bounded(ctx context.Context, bytes uint64) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, e.settings.Duration("transfer.timeout")+nanoseconds(bytes),
		fmt.Errorf("transfer.timeout (MC_TRANSFER_TIMEOUT) of %v: %w", e.settings.Duration("transfer.timeout"), xfer.Deadline))
}
