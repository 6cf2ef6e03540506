package interop

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/interop/cxx"
	"github.com/moonpath-io/moonpath/interop/pattern"
	"github.com/moonpath-io/moonpath/xfer"
)

// pair is an initiator and a target, one of which is moonpath and the other C++, with a region each.
type pair struct {
	initiator, target *region
	// transfer submits the moves, all in one direction, as one batch and waits for its end.
	transfer func(t testing.TB, op moonpath.Op, moves []move) error
	// concurrently makes each of the batches at the same time as the others, rounds times over.
	concurrently func(t testing.TB, op moonpath.Op, rounds int, batches [][]move) error
}

// move is n bytes between two offsets in the regions of a pair.
type move struct{ local, remote, n uint64 }

// region is registered memory of an engine, with what every byte of it should be.
type region struct {
	addr uint64
	want []byte
	// store puts a pattern there without a transfer.
	store func(off, n, seed uint64) error
	// differs compares bytes of the engine's memory with these.
	differs func(off uint64, want []byte) (string, error)
}

// background is the seed of what a region holds before the first transfer.
const background = 1

// fill puts a pattern into the memory and notes it.
func (r *region) fill(t testing.TB, off, n, seed uint64) {
	t.Helper()
	if err := r.store(off, n, seed); err != nil {
		t.Fatal(err)
	}
	copy(r.want[off:], pattern.Bytes(seed, int(n)))
}

// check compares the memory from off to off+n and the bytes around it.
func (r *region) check(t testing.TB, what string, off, n uint64) {
	t.Helper()
	const beside = 64
	from, to := off-min(off, beside), min(off+n+beside, uint64(len(r.want)))
	difference, err := r.differs(from, r.want[from:to])
	if err != nil {
		t.Fatal(err)
	}
	if difference != "" {
		t.Errorf("%s of %d bytes at offset %d: %s", what, n, off, difference)
	}
}

func (r *region) checkAll(t testing.TB, what string) {
	t.Helper()
	r.check(t, what, 0, uint64(len(r.want)))
}

// newMoonpathRegion allocates memory in an engine and fills it.
func newMoonpathRegion(t testing.TB, e *moonpath.Engine, size uint64) (*region, *moonpath.Memory) {
	t.Helper()
	m := alloc(t, e, size)
	r := &region{
		addr: uint64(m.At(0)),
		want: make([]byte, size),
		store: func(off, n, seed uint64) error {
			copy(m.Bytes()[off:], pattern.Bytes(seed, int(n)))
			return nil
		},
		differs: func(off uint64, want []byte) (string, error) {
			return firstDifference(m.Bytes()[off:], want), nil
		},
	}
	r.fill(t, 0, size, background)
	return r, m
}

func firstDifference(got, want []byte) string {
	if bytes.Equal(got[:len(want)], want) {
		return ""
	}
	for i := range want {
		if got[i] != want[i] {
			return fmt.Sprintf("byte %d is %#02x, want %#02x", i, got[i], want[i])
		}
	}
	return ""
}

// newCxxRegion allocates memory in a C++ peer and fills it.
func newCxxRegion(t testing.TB, p *cxx.Peer, size uint64) *region {
	t.Helper()
	addr, err := p.Alloc(size)
	if err != nil {
		t.Fatal(err)
	}
	r := &region{
		addr:  addr,
		want:  make([]byte, size),
		store: func(off, n, seed uint64) error { return p.Fill(addr+off, n, seed) },
		differs: func(off uint64, want []byte) (string, error) {
			sum, err := p.Checksum(addr+off, uint64(len(want)))
			if err != nil || sum == pattern.Checksum(want) {
				return "", err
			}
			const readable = 4 << 10
			if len(want) > readable {
				return "checksums differ", nil
			}
			got, err := p.ReadMem(addr+off, uint64(len(want)))
			return firstDifference(got, want), err
		},
	}
	r.fill(t, 0, size, background)
	return r
}

// newPairToCxx makes moonpath the initiator, with these settings.
func newPairToCxx(t *testing.T, size uint64, settings map[string]string) *pair {
	t.Helper()
	target := cxx.Start(t)
	p := &pair{target: newCxxRegion(t, target, size)}
	engine := openEngine(t, settings)
	local, memory := newMoonpathRegion(t, engine, size)
	p.initiator = local
	id := openSegment(t, engine, target.Name)
	p.transfer = func(t testing.TB, op moonpath.Op, moves []move) error {
		t.Helper()
		return transferOnce(t, engine, p.requests(memory, id, op, moves))
	}
	p.concurrently = func(t testing.TB, op moonpath.Op, rounds int, batches [][]move) error {
		t.Helper()
		errs := make(chan error, len(batches))
		var wg sync.WaitGroup
		for _, moves := range batches {
			requests := p.requests(memory, id, op, moves)
			wg.Go(func() { errs <- transferOften(t, engine, rounds, requests) })
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	}
	return p
}

func (p *pair) requests(memory *moonpath.Memory, id moonpath.SegmentID, op moonpath.Op, moves []move) []moonpath.Request {
	requests := make([]moonpath.Request, len(moves))
	for i, m := range moves {
		requests[i] = moonpath.Request{Op: op, Local: memory.At(m.local), Len: m.n, Target: id, Remote: p.target.addr + m.remote}
	}
	return requests
}

func transferOnce(t testing.TB, e *moonpath.Engine, requests []moonpath.Request) error {
	t.Helper()
	return transferOften(t, e, 1, requests)
}

// transferOften makes the same batch rounds times over, each with its end awaited.
func transferOften(t testing.TB, e *moonpath.Engine, rounds int, requests []moonpath.Request) error {
	ctx := bounded(t)
	b, err := e.NewBatch(moonpath.BatchOptions{Capacity: max(len(requests), 1)})
	if err != nil {
		return err
	}
	defer b.Close()
	for range rounds {
		if err := b.Reset(); err != nil {
			return err
		}
		if _, err := b.Submit(ctx, requests); err != nil {
			return err
		}
		if err := b.Wait(ctx); err != nil {
			return err
		}
		if err := allConfirmed(b); err != nil {
			return err
		}
	}
	return nil
}

// allConfirmed wants of each task what a transfer to this published engine can promise, in version 1 as well.
func allConfirmed(b *moonpath.Batch) error {
	for i := range b.Len() {
		if s, err := b.Status(i); err != nil || s.Remote != xfer.Confirmed {
			return fmt.Errorf("request %d is %v (%v), want it confirmed", i, s.Remote, err)
		}
	}
	return nil
}

// newPairFromCxx makes the C++ engine the initiator, with these variables in its environment.
func newPairFromCxx(t *testing.T, size uint64, env []string) *pair {
	t.Helper()
	initiator := cxx.Start(t, env...)
	p := &pair{initiator: newCxxRegion(t, initiator, size)}
	engine := openEngine(t, nil)
	p.target, _ = newMoonpathRegion(t, engine, size)
	ops := map[moonpath.Op]cxx.Op{moonpath.OpRead: cxx.Read, moonpath.OpWrite: cxx.Write}
	served := uint64(0)
	p.transfer = func(t testing.TB, op moonpath.Op, moves []move) error {
		t.Helper()
		served += sum(moves)
		if err := initiator.BatchTransfer(p.batch(ops[op], engine.Name(), moves)); err != nil {
			return err
		}
		awaitServed(t, engine, served)
		return nil
	}
	p.concurrently = func(t testing.TB, op moonpath.Op, rounds int, batches [][]move) error {
		t.Helper()
		var all []cxx.Batch
		for _, moves := range batches {
			served += sum(moves) * uint64(rounds)
			all = append(all, p.batch(ops[op], engine.Name(), moves))
		}
		if err := initiator.Parallel(rounds, all...); err != nil {
			return err
		}
		awaitServed(t, engine, served)
		return nil
	}
	return p
}

func (p *pair) batch(op cxx.Op, target string, moves []move) cxx.Batch {
	b := cxx.Batch{Op: op, Target: target}
	for _, m := range moves {
		b.Locals = append(b.Locals, p.initiator.addr+m.local)
		b.Remotes = append(b.Remotes, p.target.addr+m.remote)
		b.Lengths = append(b.Lengths, m.n)
	}
	return b
}

func sum(moves []move) (n uint64) {
	for _, m := range moves {
		n += m.n
	}
	return n
}

// awaitServed waits until the engine has moved that many bytes for peers: in version 1 a C++ initiator calls a write
// complete when its kernel has it.
func awaitServed(t testing.TB, e *moonpath.Engine, bytes uint64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d bytes served", bytes), func() bool {
		return counter(e, "tcp", "bytes_served") >= int64(bytes)
	})
}
