package meta_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/transport/transporttest/meta"
	"github.com/moonpath-io/moonpath/xfer"
)

// machine is the smallest System: copies in goroutines, piece by piece under a lock. It is right unless bug says how it is
// wrong.
type machine struct {
	bug      bug
	memory   [2][][]byte
	mappings []*mem.Mapping
	running  sync.WaitGroup

	mu         sync.Mutex
	registered [2][]bool
	using      [2][]int
	idle       sync.Cond
	thawed     sync.Cond
	frozen     bool
	lives      uint64 // grows with each cut
	release    chan struct{}
}

type bug int

const (
	none                bug = iota
	dropsAByte              // of some transfers
	completesEarly          // before the last piece is there
	writesAfterCancel       // to the target, and says that it does not
	readsAfterCancel        // into the caller's buffer
	rereads                 // the caller's buffer, when the write has completed long ago
	writesTwice             // once more when the write has completed
	refusesTooLate          // when the bytes are there
	serves                  // memory that is not registered
	forgets                 // one task of a batch that is cut
	miscounts               // says 0 bytes of a transfer that was cut in the middle
	hangs                   // in Batch.Close
	refusesReadsTooLate     // when their bytes are there
	scribbles               // on the buffers of writes
	miscountsWhole          // says one byte less of a transfer that completed
	blamesThePeer           // for local memory that is not registered
	touchesElsewhere        // local memory, a little later
	startsCancelled         // calls tasks canceled that nobody cancelled
)

// open returns machines; those that hang do so until the test has ended.
func open(t testing.TB, b bug, shape meta.Shape) func(uint64) (meta.System, error) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	return func(uint64) (meta.System, error) {
		m := &machine{bug: b, release: release}
		m.idle.L, m.thawed.L = &m.mu, &m.mu
		for side := range m.memory {
			for _, size := range shape.Sizes {
				mapping, err := mem.Map(uint64(size), true)
				if err != nil {
					return nil, err
				}
				m.mappings = append(m.mappings, mapping)
				m.memory[side] = append(m.memory[side], mapping.Bytes())
			}
			m.registered[side] = make([]bool, len(shape.Sizes))
			m.using[side] = make([]int, len(shape.Sizes))
		}
		return m, nil
	}
}

func (m *machine) Memory(side meta.Side, slot int) []byte { return m.memory[side][slot] }

func (m *machine) Register(side meta.Side, slot int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.registered[side][slot] = true
	return nil
}

func (m *machine) Unregister(side meta.Side, slot int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.registered[side][slot] = false
	for m.using[side][slot] > 0 {
		m.idle.Wait()
	}
	return nil
}

func (m *machine) Freeze() error { return m.disturb(func() { m.frozen = true }) }
func (m *machine) Thaw() error   { return m.disturb(func() { m.frozen = false }) }
func (m *machine) Cut() error    { return m.disturb(func() { m.lives++ }) }

func (m *machine) disturb(how func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	how()
	m.thawed.Broadcast()
	return nil
}

func (m *machine) Close() error {
	m.running.Wait()
	return nil
}

func (m *machine) Free() error {
	var errs []error
	for _, mapping := range m.mappings {
		errs = append(errs, mapping.Free())
	}
	return errors.Join(errs...)
}

// tasks is a batch.
type tasks struct {
	*machine
	requests  []meta.Request
	status    []xfer.Status
	life      uint64
	cancelled bool
	left      int
	over      chan struct{}
}

func (m *machine) Submit(rs []meta.Request) (meta.Batch, error) {
	m.mu.Lock()
	b := &tasks{machine: m, requests: rs, status: make([]xfer.Status, len(rs)), life: m.lives, left: len(rs), over: make(chan struct{})}
	m.mu.Unlock()
	for i, r := range rs {
		leased := m.lease(meta.Local, r.Local.Slot)
		m.running.Go(func() { b.run(i, leased) })
	}
	return b, nil
}

// lease keeps a slot registered until it is given back; false if it is not registered.
func (m *machine) lease(side meta.Side, slot int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.registered[side][slot] {
		m.using[side][slot]++
	}
	return m.registered[side][slot]
}

// giveBack ends a lease; m.mu is held.
func (m *machine) giveBack(side meta.Side, slot int) {
	m.using[side][slot]--
	m.idle.Broadcast()
}

func (m *machine) Do(ctx context.Context, r meta.Request) error {
	b, err := m.Submit([]meta.Request{r})
	if err != nil {
		return err
	}
	if b.Wait(ctx) != nil {
		b.Cancel()
		b.Wait(context.Background())
	}
	s, _ := b.Status(0)
	if s.State == xfer.Completed {
		return nil
	}
	return s.Err
}

func (b *tasks) Wait(ctx context.Context) error {
	select {
	case <-b.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *tasks) Status(i int) (xfer.Status, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status[i], nil
}

func (b *tasks) Cancel() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancelled = true
	b.thawed.Broadcast()
}

func (b *tasks) Close() error {
	b.Cancel()
	switch b.bug {
	case forgets:
		return nil // else nobody would learn of the forgotten task
	case hangs:
		<-b.release
	}
	return b.Wait(context.Background())
}

// end gives a task its status; b.mu is held.
func (b *tasks) end(i int, state xfer.State, bytes uint64, code xfer.Code, remote xfer.Certainty) {
	s := xfer.Status{State: state, Bytes: bytes, Remote: remote}
	if code != xfer.OK {
		s.Err = &xfer.Fault{Code: code, Stage: xfer.StageComplete, Remote: remote}
	}
	b.status[i] = s
	if b.left--; b.left == 0 {
		close(b.over)
	}
}

// piece is what is copied under the lock at a time.
const piece = 64

func (b *tasks) run(i int, leased bool) {
	r := b.requests[i]
	local, remote := b.memory[meta.Local][r.Local.Slot][r.Local.Off:][:r.Len], b.memory[meta.Remote][r.Remote.Slot][r.Remote.Off:][:r.Len]
	from, to := local, remote
	if r.Op == xfer.Read {
		from, to = to, from
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if leased {
		defer b.giveBack(meta.Local, r.Local.Slot)
	}
	for b.frozen && !b.cancelled && r.Len > 0 {
		b.thawed.Wait()
	}
	if r.Len > 0 {
		switch {
		case !leased:
			code := xfer.AddressNotRegistered
			if b.bug == blamesThePeer {
				code = xfer.Refused
			}
			b.end(i, xfer.Failed, 0, code, xfer.Confirmed)
			return
		case !b.registered[meta.Remote][r.Remote.Slot] && b.bug != serves:
			if b.bug == refusesTooLate || b.bug == refusesReadsTooLate && r.Op == xfer.Read {
				move(to, from)
			}
			b.end(i, xfer.Failed, 0, xfer.Refused, xfer.Confirmed)
			return
		case b.bug == startsCancelled && r.Len%16 == 7:
			b.end(i, xfer.Canceled, 0, xfer.Interrupted, xfer.Confirmed)
			return
		}
	}
	b.using[meta.Remote][r.Remote.Slot]++
	defer b.giveBack(meta.Remote, r.Remote.Slot)
	if b.copy(i, r, from, to) {
		b.afterwards(r, from, to)
	}
}

// copy moves the bytes and ends the task; false if it was ended before. b.mu is held, and let go of between pieces.
func (b *tasks) copy(i int, r meta.Request, from, to []byte) (whole bool) {
	for done := uint64(0); done < r.Len; done += min(piece, r.Len-done) {
		n := min(piece, r.Len-done)
		left := r.Len - done
		if b.cancelled || b.lives != b.life {
			state, code := xfer.Failed, xfer.Socket
			if b.cancelled {
				state, code = xfer.Canceled, xfer.Interrupted
			} else if b.bug == forgets {
				return false
			}
			bytes, remote := done, xfer.Confirmed
			if b.bug == miscounts {
				bytes = 0
			}
			b.end(i, state, bytes, code, remote)
			if b.bug == writesAfterCancel && r.Op == xfer.Write || b.bug == readsAfterCancel && r.Op == xfer.Read {
				b.late(func() { move(to[done:], from[done:]) })
			}
			return false
		}
		if b.bug == completesEarly && left <= piece && r.Len > piece {
			b.end(i, xfer.Completed, r.Len, xfer.OK, xfer.Confirmed)
			b.late(func() { move(to[done:], from[done:]) })
			return false
		}
		skip := uint64(0)
		if b.bug == dropsAByte && left <= piece {
			skip = 1
		}
		move(to[done:done+n-skip], from[done:])
		b.mu.Unlock()
		runtime.Gosched()
		b.mu.Lock()
	}
	counted := r.Len
	switch {
	case r.Len == 0:
	case b.bug == scribbles && r.Op == xfer.Write:
		move(from[:1], []byte{from[0] + 1})
	case b.bug == miscountsWhole:
		counted--
	}
	b.end(i, xfer.Completed, counted, xfer.OK, xfer.Confirmed)
	return true
}

// afterwards does what nobody may do when the task has ended.
func (b *tasks) afterwards(r meta.Request, from, to []byte) {
	if r.Op == xfer.Read || r.Len == 0 {
		return
	}
	switch b.bug {
	case touchesElsewhere:
		b.late(func() { move(b.memory[meta.Local][1], []byte("!")) })
	case rereads:
		b.late(func() { move(to, from) })
	case writesTwice:
		again := make([]byte, len(from))
		move(again, from)
		b.late(func() { move(to, again) })
	}
}

// late does something a little later, in another goroutine.
func (b *tasks) late(what func()) {
	b.running.Go(func() {
		timer := time.NewTimer(20 * time.Microsecond)
		defer timer.Stop()
		<-timer.C
		b.mu.Lock()
		defer b.mu.Unlock()
		what()
	})
}

var errNoMachine = errors.New("no machine today")

// move is what the race detector does not look at, as it does not at the kernel's copies.
func move(to, from []byte) {
	if _, err := mem.Copy(to, from); err != nil {
		panic(err)
	}
}
