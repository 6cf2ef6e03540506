package meta

//moonpath:goroutines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/xfer"
)

// Violation is where and how a system differed from the model.
type Violation struct {
	Step   int // index in the history; its length: at the end
	What   string
	Stacks string // of all goroutines, if a call was stuck
}

// Error returns the violation in one line.
func (v *Violation) Error() string { return fmt.Sprintf("step %d: %s", v.Step+1, v.What) }

// frozenLimit bounds a single transfer to a frozen peer.
const frozenLimit = 2 * time.Millisecond

// runner is one history under way.
type runner struct {
	System
	shape      Shape
	random     *rand.Rand // content of memory
	model      model
	shadow     [][]byte // what local memory holds, but for the buffers of open reads
	registered [2][]bool
	batches    map[int]*batch
	frozen     bool
	disturbed  bool // something happened to the connection
	stuck      bool // a call has not returned
	stacks     string
	scratch    []byte
}

// batch is one that the history has not waited for or closed.
type batch struct {
	Batch
	ops       []*op
	cancelled bool
}

// op is a request with what its outcome is judged by.
type op struct {
	Request
	local        span
	write        *layer   // of a write
	read         *reading // of a read
	old          []byte   // what the buffer of a read held
	prepared     bool     // its local memory was registered when it was submitted
	seen, always bool     // its remote memory was registered at some time, at all times
}

// Replay runs a history on a fresh system, which open makes and which may depend on the history's seed. The error is a *Violation, or says that the system itself could not be had.
func (s Shape) Replay(open func(seed uint64) (System, error), h History) error {
	if s.Patience == 0 {
		s.Patience = 20 * time.Second
	}
	system, err := open(h.Seed)
	if err != nil {
		return fmt.Errorf("meta: opening a system: %w", err)
	}
	r := &runner{System: system, shape: s, random: rand.New(rand.NewPCG(h.Seed, 1)), batches: make(map[int]*batch)}
	for slot, size := range s.Sizes {
		for side := range r.registered {
			if n := len(r.Memory(Side(side), slot)); n != size {
				return fmt.Errorf("meta: slot %d of the %s side has %d bytes, want %d", slot, Side(side), n, size)
			}
			r.registered[side] = append(r.registered[side], false)
		}
		r.shadow, r.model.base = append(r.shadow, make([]byte, size)), append(r.model.base, make([]byte, size))
		r.renew(r.Memory(Local, slot), r.shadow[slot])
		r.renew(r.Memory(Remote, slot), r.model.base[slot])
	}
	at, err := r.all(h.Steps)
	if err != nil {
		err = &Violation{Step: at, What: err.Error(), Stacks: r.stacks}
		if r.frozen {
			_ = r.Thaw() // else it may take long to close
		}
		_ = r.within("closing the engines", system.Close) // what is wrong is known
	}
	if r.stuck {
		return err // and its memory stays, because it may still be used
	}
	return errors.Join(err, system.Free())
}

// within runs a call that may be stuck in a goroutine of its own, which it leaves behind if it is.
func (r *runner) within(what string, call func() error) error {
	over := make(chan error, 1)
	go func() { over <- call() }()
	timer := time.NewTimer(r.shape.Patience)
	defer timer.Stop()
	select {
	case err := <-over:
		return err
	case <-timer.C:
		r.stuck, r.stacks = true, stacks()
		return fmt.Errorf("%s has not returned within %v", what, r.shape.Patience)
	}
}

// stacks says where all goroutines are, as far as a MiB holds it.
func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}

func (r *runner) all(steps []Step) (at int, err error) {
	for i := range steps {
		if err := r.step(&steps[i]); err != nil {
			return i, fmt.Errorf("%s: %w", steps[i].Kind, err)
		}
	}
	return len(steps), r.end()
}

// end closes everything, and looks before and after.
func (r *runner) end() error {
	if r.frozen {
		if err := r.Thaw(); err != nil {
			return fmt.Errorf("thaw: %w", err)
		}
	}
	var names []int
	for name := range r.batches {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := r.closeBatch(name); err != nil {
			return fmt.Errorf("closing b%d at the end: %w", name, err)
		}
	}
	if err := r.look(); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	if err := r.within("closing the engines", r.Close); err != nil {
		return fmt.Errorf("closing the engines: %w", err)
	}
	if err := r.look(); err != nil {
		return fmt.Errorf("after the engines were closed: %w", err)
	}
	return nil
}

func (r *runner) step(s *Step) error {
	switch s.Kind {
	case Register, Unregister:
		return r.register(s)
	case Submit:
		return r.submit(s)
	case Wait:
		return r.wait(s.Batch)
	case Cancel:
		if b := r.batches[s.Batch]; b != nil {
			b.cancelled = true
			b.Cancel()
		}
		return nil
	case CloseBatch:
		return r.closeBatch(s.Batch)
	case Do:
		return r.do(s)
	case Pause:
		timer := time.NewTimer(s.Limit)
		defer timer.Stop()
		<-timer.C
		return nil
	case Look:
		return r.look()
	}
	return r.disturb(s.Kind)
}

func (r *runner) disturb(k Kind) error {
	if !r.shape.Faults || k == Freeze && r.frozen || k == Thaw && !r.frozen {
		return nil
	}
	r.disturbed = true
	switch k {
	case Freeze:
		r.frozen = true
		return r.Freeze()
	case Thaw:
		r.frozen = false
		return r.Thaw()
	}
	return r.Cut()
}

// register does nothing if the slot is in that state already, or if a frozen peer would have to answer first.
func (r *runner) register(s *Step) error {
	wanted := s.Kind == Register
	if s.Slot < 0 || s.Slot >= len(r.shadow) || r.registered[s.Side][s.Slot] == wanted || !wanted && r.frozen {
		return nil
	}
	if s.Side == Remote {
		for _, b := range r.batches {
			for _, o := range b.ops {
				if o.Remote.Slot == s.Slot {
					o.seen, o.always = true, false
				}
			}
		}
	}
	r.registered[s.Side][s.Slot] = wanted
	if wanted {
		return r.Register(s.Side, s.Slot)
	}
	return r.within("Unregister", func() error { return r.Unregister(s.Side, s.Slot) })
}

func (r *runner) submit(s *Step) error {
	if r.batches[s.Batch] != nil {
		return nil
	}
	b := new(batch)
	var rs []Request
	for _, q := range s.Requests {
		if r.usable(q, b.ops) {
			b.ops = append(b.ops, r.begin(q))
			rs = append(rs, q)
		}
	}
	if len(rs) == 0 {
		return nil
	}
	if err := r.within("Submit", func() (err error) { b.Batch, err = r.Submit(rs); return err }); err != nil {
		return err
	}
	r.batches[s.Batch] = b
	return nil
}

// usable reports whether a request lies in memory, and shares its buffer with no open one nor with one of ops.
func (r *runner) usable(q Request, ops []*op) bool {
	for _, p := range []Place{q.Local, q.Remote} {
		if p.Slot < 0 || p.Slot >= len(r.shadow) {
			return false
		}
		if size := uint64(len(r.shadow[p.Slot])); p.Off > size || q.Len > size-p.Off {
			return false
		}
	}
	local := spanAt(q.Local, q.Len)
	taken := func(o *op) bool { return o.local.overlaps(local) }
	for _, b := range r.batches {
		if slices.ContainsFunc(b.ops, taken) {
			return false
		}
	}
	return !slices.ContainsFunc(ops, taken)
}

// begin tells the model of a request that is about to be submitted.
func (r *runner) begin(q Request) *op {
	there := r.registered[Remote][q.Remote.Slot]
	o := &op{Request: q, local: spanAt(q.Local, q.Len), prepared: r.registered[Local][q.Local.Slot], seen: there, always: there}
	remote, buffer := spanAt(q.Remote, q.Len), r.shadow[q.Local.Slot][o.local.lo:o.local.hi]
	if q.Op == xfer.Write {
		o.write = r.model.begin(remote, buffer)
	} else {
		o.read = r.model.read(remote)
		o.old = bytes.Clone(buffer)
	}
	return o
}

func (r *runner) wait(name int) error {
	b := r.batches[name]
	if b == nil {
		return nil
	}
	if r.frozen && !b.cancelled {
		b.cancelled = true
		b.Cancel()
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.shape.Patience)
	defer cancel()
	err := b.Wait(ctx)
	if ctx.Err() != nil {
		r.stacks = stacks()
		return fmt.Errorf("the batch has not ended within %v: %w", r.shape.Patience, err)
	}
	if err := r.settle(b); err != nil {
		return err
	}
	delete(r.batches, name)
	return r.within("Batch.Close", b.Close)
}

func (r *runner) closeBatch(name int) error {
	b := r.batches[name]
	if b == nil {
		return nil
	}
	b.cancelled = true
	if err := r.within("Batch.Close", b.Close); err != nil {
		return err
	}
	delete(r.batches, name)
	return r.settle(b)
}

func (r *runner) settle(b *batch) error {
	for i, o := range b.ops {
		s, err := b.Status(i)
		if err != nil {
			return fmt.Errorf("status of task %d: %w", i, err)
		}
		if err := r.judge(o, outcome{Status: s, counted: true, cancelled: b.cancelled}); err != nil {
			return fmt.Errorf("task %d, %s: %w", i, o.Request, err)
		}
	}
	return nil
}

// do makes a transfer whose outcome is an error.
func (r *runner) do(s *Step) error {
	for _, q := range s.Requests {
		if !r.usable(q, nil) {
			continue
		}
		limit := s.Limit
		if r.frozen {
			limit = frozenLimit
		}
		out := outcome{cancelled: limit > 0}
		if limit == 0 {
			limit = r.shape.Patience
		}
		o := r.begin(q)
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		err := r.Do(ctx, q)
		late := ctx.Err() != nil
		cancel()
		out.State, out.Err = xfer.Completed, err
		if err != nil {
			var f *xfer.Fault
			if !errors.As(err, &f) {
				return fmt.Errorf("%s: the error is no fault: %w", q, err)
			}
			if out.State, out.Remote = xfer.Failed, f.Remote; late && out.cancelled {
				out.State = xfer.Canceled
			}
		}
		if err := r.judge(o, out); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	return nil
}

// look compares all memory with the model. The buffers of open reads may be anything.
func (r *runner) look() error {
	for slot, want := range r.shadow {
		got := r.read(r.Memory(Local, slot))
		if !bytes.Equal(got, want) {
			for i := range got {
				if got[i] != want[i] && !r.beingRead(slot, uint64(i)) {
					return fmt.Errorf("local slot %d offset %d is %#02x, want %#02x: nothing that is under way may touch it", slot, i, got[i], want[i])
				}
			}
		}
		if err := r.model.look(slot, r.read(r.Memory(Remote, slot))); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) beingRead(slot int, off uint64) bool {
	at := span{slot, off, off + 1}
	for _, b := range r.batches {
		if slices.ContainsFunc(b.ops, func(o *op) bool { return o.Op == xfer.Read && o.local.overlaps(at) }) {
			return true
		}
	}
	return false
}

// read returns a copy of memory that transports may be writing to: what is read may be old or new, and the race detector
// is not asked.
func (r *runner) read(memory []byte) []byte {
	r.scratch = append(r.scratch[:0], make([]byte, len(memory))...)
	_, _ = mem.Copy(r.scratch, memory) // fails only for memory that is not mapped
	return r.scratch
}

// renew fills memory with new bytes, and a copy of it. No memory held them before, as far as a byte can tell.
func (r *runner) renew(memory, shadow []byte) {
	for i := 0; i < len(shadow); i += 8 {
		v := r.random.Uint64()
		for j := i; j < min(i+8, len(shadow)); j++ {
			shadow[j] = byte(v >> (8 * (j - i)))
		}
	}
	_, _ = mem.Copy(memory, shadow)
}
