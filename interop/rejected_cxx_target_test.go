package interop

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/interop/cxx"
	"github.com/moonpath-io/moonpath/interop/pattern"
	"github.com/moonpath-io/moonpath/xfer"
)

// rejection is a C++ target with a good region and one that it rejects, and a moonpath engine that is asked for both.
type rejection struct {
	target *cxx.Peer
	engine *moonpath.Engine
	id     moonpath.SegmentID
	local  *moonpath.Memory
	good   uint64
	bad    uint64
	block  uint64
}

func newRejection(t *testing.T, settings map[string]string, count int, block uint64) *rejection {
	t.Helper()
	r := &rejection{target: cxx.Start(t), block: block}
	r.good = allocCxx(t, r.target, uint64(count)*block)
	var err error
	if r.bad, err = r.target.Map(block); err != nil {
		t.Fatal(err)
	}
	r.engine = openEngine(t, settings)
	r.local = alloc(t, r.engine, uint64(count)*block)
	r.id = openSegment(t, r.engine, r.target.Name)
	return r
}

// deceive makes the engine's descriptor stale: it has the bad region, which the target has unregistered. Requests for
// that travel among good ones on a pipelined connection, which the target then ends by a reset. The engine fetches the
// descriptor anew after that, so that each batch needs another deception.
func (r *rejection) deceive(t *testing.T) {
	t.Helper()
	for _, step := range []func() error{
		func() error { return r.target.Register(r.bad, r.block) },
		func() error { return r.engine.SyncSegmentCache(r.target.Name) },
		func() error { return r.target.Unregister(r.bad) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if d, err := r.engine.Segment(r.id); err != nil || d.Find(r.bad) == nil {
		t.Fatalf("the descriptor does not have %#x (%v)", r.bad, err)
	}
}

// spoilt is a batch of one block per request, some of which the target rejects.
type spoilt struct {
	op       moonpath.Op
	first    int // block in both regions with which the batch begins
	bad      []int
	requests []moonpath.Request
	want     []byte // what the destination has in the end, zeros in place of the bad blocks
}

// prepare fills the source with a pattern and the destination with zeros.
func (r *rejection) prepare(t *testing.T, op moonpath.Op, first, count int, bad ...int) *spoilt {
	t.Helper()
	b := &spoilt{op: op, first: first, bad: bad}
	start, n, seed := uint64(first)*r.block, uint64(count)*r.block, uint64(first+count)
	b.want = pattern.Bytes(seed, int(n))
	if local := r.local.Bytes()[start : start+n]; op == moonpath.OpWrite {
		copy(local, b.want)
		if err := r.target.Zero(r.good+start, n); err != nil {
			t.Fatal(err)
		}
	} else {
		clear(local)
		fillCxx(t, r.target, r.good+start, n, seed)
	}
	for i := range uint64(count) {
		off := start + i*r.block
		b.requests = append(b.requests, moonpath.Request{Op: op, Local: r.local.At(off), Len: r.block, Target: r.id, Remote: r.good + off})
	}
	for _, i := range bad {
		b.requests[i].Remote = r.bad
		clear(b.block(b.want, i, r.block))
	}
	return b
}

func (b *spoilt) block(of []byte, i int, size uint64) []byte {
	return of[uint64(i)*size : uint64(i+1)*size]
}

// verify wants exactly the bad requests to have failed, and every byte of the others in place.
func (r *rejection) verify(t *testing.T, b *spoilt, batch *moonpath.Batch, err error) {
	t.Helper()
	if len(b.bad) > 0 && !errors.Is(err, xfer.Refused) || len(b.bad) == 0 && err != nil {
		t.Errorf("the batch, with %d bad requests: %v", len(b.bad), err)
	}
	wrong := 0
	for i := range b.requests {
		s, err := batch.Status(i)
		if err != nil {
			t.Fatal(err)
		}
		ok, want := s.State == xfer.Completed && s.Err == nil && s.Bytes == r.block, "completed"
		if slices.Contains(b.bad, i) {
			ok, want = s.State == xfer.Failed && errors.Is(s.Err, xfer.Refused) && s.Bytes == 0, "refused"
		}
		if ok {
			continue
		}
		if wrong++; wrong <= 3 {
			t.Errorf("request %d: %v with %d bytes, %v; want it %s", i, s.State, s.Bytes, s.Err, want)
		}
	}
	if wrong > 3 {
		t.Errorf("%d requests in all did not end as they should", wrong)
	}
	start := uint64(b.first) * r.block
	if b.op == moonpath.OpWrite {
		wantCxx(t, r.target, "written", r.good+start, b.want)
		return
	}
	got := slices.Clone(r.local.Bytes()[start : start+uint64(len(b.want))])
	for _, i := range b.bad {
		clear(b.block(got, i, r.block)) // what a failed read leaves there means nothing
	}
	if difference := firstDifference(got, b.want); difference != "" {
		t.Errorf("read: %s", difference)
	}
}

func (r *rejection) check(t *testing.T, stale bool, op moonpath.Op, count int, bad ...int) {
	t.Helper()
	b := r.prepare(t, op, 0, count, bad...)
	if stale {
		r.deceive(t)
	}
	batch, err := run(t, r.engine, b.requests)
	r.verify(t, b, batch, err)
}

var bothOps = []moonpath.Op{moonpath.OpWrite, moonpath.OpRead}

func TestCxxTargetRejectsOneOfAHundred(t *testing.T) {
	needCxx(t)
	const count = 100
	for _, protocol := range []string{"2", "1"} {
		for _, block := range []uint64{512, 40 * kib, 256 * kib} {
			t.Run(fmt.Sprintf("v%s/%d", protocol, block), func(t *testing.T) {
				r := newRejection(t, map[string]string{"tcp.protocol": protocol}, count, block)
				for _, stale := range []bool{false, true} {
					for _, op := range bothOps {
						for _, at := range []int{0, 57, count - 1} {
							t.Run(fmt.Sprintf("stale %t/%v/%d", stale, op, at), func(t *testing.T) { r.check(t, stale, op, count, at) })
						}
					}
				}
				t.Run("none", func(t *testing.T) { r.check(t, false, moonpath.OpWrite, count) })
			})
		}
	}
}

// TestCxxTargetRejectsMany has so many bad requests that a connection after the other breaks before any answer is in.
func TestCxxTargetRejectsMany(t *testing.T) {
	needCxx(t)
	for _, c := range []struct {
		count  int
		block  uint64
		spaced int // every one of so many is bad
		lanes  string
	}{
		{1000, 4 * kib, 2, "1"},
		{1000, 4 * kib, 2, "4"},
		{1000, 4 * kib, 30, "1"},
		{1000, 4 * kib, 30, "4"},
		{300, 64 * kib, 8, "2"},
		{60, mib, 8, "1"},
		{20, 3 * mib, 4, "4"},
	} {
		t.Run(fmt.Sprintf("%d of %d bytes/1 in %d/%s lanes", c.count, c.block, c.spaced, c.lanes), func(t *testing.T) {
			r := newRejection(t, map[string]string{"tcp.lanes": c.lanes}, c.count, c.block)
			var bad []int
			for i := 1; i < c.count; i += c.spaced {
				bad = append(bad, i)
			}
			for _, op := range bothOps {
				t.Run(op.String(), func(t *testing.T) { r.check(t, true, op, c.count, bad...) })
			}
		})
	}
}

// TestCxxTargetRejectsWhileItsControlPortIsBusy has an idle connection at the control port, behind which the published
// engine answers nobody for five seconds. Good requests do not need that port.
func TestCxxTargetRejectsWhileItsControlPortIsBusy(t *testing.T) {
	const count = 100
	r := newRejection(t, map[string]string{"tcp.lanes": "1"}, count, 4096)
	b := r.prepare(t, moonpath.OpWrite, 0, count, 50)
	r.deceive(t)
	idle, err := net.Dial("tcp", r.target.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = idle.Close() }()
	batch, err := run(t, r.engine, b.requests)
	r.verify(t, b, batch, err)
}

func TestCxxTargetRejectsSomeOfFourSubmitters(t *testing.T) {
	const submitters, count = 4, 100
	for _, block := range []uint64{4 * kib, 64 * kib} {
		r := newRejection(t, nil, submitters*count, block)
		for _, op := range bothOps {
			t.Run(fmt.Sprintf("%d/%v", block, op), func(t *testing.T) {
				var all [submitters]*spoilt
				var batches [submitters]*moonpath.Batch
				var errs [submitters]error
				for i := range all {
					bad := []int{10 * i, 50, 51, 99}
					if i == 3 {
						bad = nil // its neighbours' failures are not its own
					}
					all[i] = r.prepare(t, op, i*count, count, bad...)
				}
				r.deceive(t)
				var wg sync.WaitGroup
				for i, b := range all {
					batches[i] = newBatch(t, r.engine, count)
					wg.Go(func() { errs[i] = submitAndWait(t, batches[i], b.requests) })
				}
				wg.Wait()
				for i, b := range all {
					r.verify(t, b, batches[i], errs[i])
				}
			})
		}
	}
}
