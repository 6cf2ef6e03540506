package local

import (
	"bytes"
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

func fill(b []byte, seed byte) {
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i)*7 ^ seed
	}
}

func TestCopiesGoBothWaysToTheOwnSegmentAndToAnotherEngine(t *testing.T) {
	a, b := openEngine(t), openEngine(t)
	here := a.memory(24<<20, false)
	for name, to := range map[string]*engine{"own": a, "other": b} {
		t.Run(name, func(t *testing.T) {
			there := to.memory(24<<20, true)
			r, s := a.dial(to)
			for i, n := range []uint64{1, 7, 4096, transport.SmallLimit, transport.SmallLimit + 1, inlineBytes, 1 << 20, pieceBytes + 1, 20 << 20} {
				fill(here.Bytes(), byte(i))
				want := bytes.Clone(here.Bytes()[5 : 5+n])
				if f := s.run(r, newTask(xfer.Write, here, 5, n, uint64(there.At(3)))); f != nil {
					t.Fatal(f)
				}
				if !bytes.Equal(there.Bytes()[3:3+n], want) || there.Bytes()[2] != 0 {
					t.Fatalf("a write of %d bytes is wrong", n)
				}
				clear(here.Bytes())
				if f := s.run(r, newTask(xfer.Read, here, 5, n, uint64(there.At(3)))); f != nil {
					t.Fatal(f)
				}
				if !bytes.Equal(here.Bytes()[5:5+n], want) || here.Bytes()[4] != 0 || here.Bytes()[5+n] != 0 {
					t.Fatalf("a read of %d bytes is wrong", n)
				}
				clear(there.Bytes())
			}
			if n := there.InUse(); n != 0 {
				t.Errorf("%d leases are out", n)
			}
		})
	}
}

func TestOffersAreForEnginesOfThisProcess(t *testing.T) {
	a, b := openEngine(t), openEngine(t)
	gone := openEngine(t)
	gone.tr.Close(t.Context())
	for _, x := range []struct {
		d    *segment.Desc
		have string
	}{
		{a.desc(), ""}, {b.desc(), ""},
		{gone.desc(), "incarnation"},
		{&segment.Desc{Name: "x", Ext: &segment.Extension{Incarnation: 1}}, "incarnation 1"},
		{&segment.Desc{Name: "x"}, "without incarnation"},
	} {
		offers := a.tr.Offers(x.d, nil)
		if len(offers) != 1 {
			t.Fatalf("%d offers", len(offers))
		}
		o := offers[0]
		switch {
		case x.have == "" && len(o.Refused) > 0:
			t.Errorf("refused: %v", o.Refused)
		case x.have != "" && (len(o.Refused) != 1 || o.Refused[0].Code != "process" || !strings.Contains(o.Refused[0].Have, x.have)):
			t.Errorf("got %v, want a reason with %q", o.Refused, x.have)
		}
		if !o.Serves(xfer.HostMem) || !o.Ops.Has(xfer.Read) || !o.Ops.Has(xfer.Write) || o.Cost.PerMiB == 0 {
			t.Errorf("offer %+v", o)
		}
	}
	if _, err := a.tr.Dial(t.Context(), peer{gone.desc()}, &source{t: t}); xfer.CodeOf(err) != xfer.Endpoint {
		t.Errorf("dialed an engine that has left: %v", err)
	}
	d := a.desc()
	if a.tr.Describe(d); len(d.Protocols) > 0 {
		t.Errorf("published as %v; other processes cannot use it", d.Protocols)
	}
}

func TestRangesOutsideOfARegistrationAreRefused(t *testing.T) {
	a, b := openEngine(t), openEngine(t)
	here := a.memory(64<<10, false)
	m, err := mem.Map(16384, true)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	base := mem.AddrOf(m.Bytes())
	if _, err := b.regions.Register([]mem.Spec{{Addr: base + 4096, Len: 4096, Remote: true}, {Addr: base + 8192, Len: 4096, Remote: true}}); err != nil {
		t.Fatal(err)
	}
	r, s := a.dial(b)
	start := uint64(base) + 4096
	for name, x := range map[string]struct{ addr, n uint64 }{
		"before":          {start - 1, 1},
		"across start":    {start - 1, 2},
		"across two":      {start + 4095, 2},
		"at the end":      {start + 8192, 1},
		"across the end":  {start + 8191, 2},
		"address 0":       {0, 1},
		"address 2^64-1":  {math.MaxUint64, 1},
		"a large one":     {start, 32 << 10},
		"far beyond, big": {1 << 60, 32 << 10},
	} {
		for _, op := range []xfer.Op{xfer.Read, xfer.Write} {
			f := s.run(r, newTask(op, here, 0, x.n, x.addr))
			if f == nil || f.Code != xfer.Refused || f.Path != Name || f.Peer != "peer" || !strings.Contains(f.Error(), "no registration") {
				t.Errorf("%s of %s: %v", op, name, f)
			}
		}
	}
	if f := s.run(r, newTask(xfer.Write, here, 0, 4096, start)); f != nil {
		t.Errorf("a good request: %v", f)
	}
}

func TestMemoryThatIsNotRemotelyAccessibleIsForItsOwnerOnly(t *testing.T) {
	a, b := openEngine(t), openEngine(t)
	here, private := a.memory(4096, false), b.memory(4096, false)
	r, s := a.dial(b)
	for _, op := range []xfer.Op{xfer.Read, xfer.Write} {
		if f := s.run(r, newTask(op, here, 0, 100, uint64(private.Addr))); f == nil || f.Code != xfer.Refused || !strings.Contains(f.Error(), "not remotely accessible") {
			t.Errorf("%s: %v", op, f)
		}
	}
	r, s = b.dial(b)
	if f := s.run(r, newTask(xfer.Write, private, 0, 100, uint64(private.At(1000)))); f != nil {
		t.Errorf("the owner: %v", f)
	}
}

func TestMemoryThatIsNotMappedIsAnError(t *testing.T) {
	a, b := openEngine(t), openEngine(t)
	here, there := a.memory(2<<20, false), b.memory(2<<20, true)
	lost := func(e *engine) *mem.Region {
		m, err := mem.Map(2<<20, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Free() })
		// As if it were unmapped, but nothing else can come to lie there.
		if err := unix.Mprotect(m.Bytes(), unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
		return e.register(m, 2<<20, true)
	}
	goneThere, goneHere := lost(b), lost(a)
	r, s := a.dial(b)
	for _, n := range []uint64{100, 1 << 20} {
		for _, op := range []xfer.Op{xfer.Read, xfer.Write} {
			for _, k := range []*task{newTask(op, here, 0, n, uint64(goneThere.Addr)), newTask(op, goneHere, 0, n, uint64(there.Addr))} {
				f := s.run(r, k)
				if f == nil || f.Code != xfer.Memory || !errors.Is(f, mem.ErrUnmapped) {
					t.Fatalf("%s of %d bytes: %v", op, n, f)
				}
			}
			if f := s.run(r, newTask(op, here, 0, n, uint64(there.Addr))); f != nil {
				t.Fatalf("a good %s: %v", op, f)
			}
		}
	}
	if goneThere.InUse() != 0 {
		t.Error("a lease is out")
	}
}

func TestUnregisteredMemoryIsRefusedAndUnregisteringWaitsForCopies(t *testing.T) {
	a, b := openEngine(t), openEngine(t)
	here, there := a.memory(16<<20, false), b.memory(16<<20, true)
	r, s := a.dial(b)
	k := newTask(xfer.Write, here, 0, 16<<20, uint64(there.Addr))
	s.add(k)
	r.Kick()
	if err := b.regions.Close(t.Context(), []*mem.Region{there}); err != nil {
		t.Fatal(err)
	}
	if n := there.InUse(); n != 0 {
		t.Errorf("%d leases are out after unregistering", n)
	}
	<-k.ended // as far as it came
	if f := s.run(r, newTask(xfer.Write, here, 0, 100, uint64(there.Addr))); f == nil || f.Code != xfer.Refused {
		t.Errorf("got %v", f)
	}
}

// TestAnEngineThatLeftIsReachedNoMore: its memory may be gone, or belong to somebody else.
func TestAnEngineThatLeftIsReachedNoMore(t *testing.T) {
	a, b := openEngine(t), openEngine(t)
	here, there := a.memory(1<<20, false), b.memory(1<<20, true)
	r, s := a.dial(b)
	if f := s.run(r, newTask(xfer.Write, here, 0, 100, uint64(there.Addr))); f != nil {
		t.Fatal(f)
	}
	b.tr.Close(t.Context())
	for _, n := range []uint64{100, 1 << 20} {
		if f := s.run(r, newTask(xfer.Write, here, 0, n, uint64(there.Addr))); f == nil || f.Code != xfer.Endpoint {
			t.Errorf("got %v", f)
		}
	}
	if there.InUse() != 0 {
		t.Error("a lease is out")
	}
	b.tr.Close(t.Context()) // once more
}

// TestNothingIsOutAfterQuiesce, however many submitters are in the middle of a copy.
func TestNothingIsOutAfterQuiesce(t *testing.T) {
	a, b := openEngine(t), openEngine(t)
	here, there := a.memory(8<<20, false), b.memory(8<<20, true)
	for range 50 {
		r, s := a.dial(b)
		var over atomic.Bool
		var submitters sync.WaitGroup
		for i := range uint64(3) {
			submitters.Go(func() {
				for !over.Load() {
					s.add(newTask(xfer.Write, here, i<<20, 10000, uint64(there.At(i<<20))))
					s.add(newTask(xfer.Read, here, (4+i)<<20, 200000, uint64(there.At(i<<20))))
					r.Kick()
				}
			})
		}
		for s.held() == 0 {
			runtime.Gosched()
		}
		if q := r.Quiesce(context.Background()); q != transport.Quiet {
			t.Errorf("the route is %v", q)
		}
		if n := s.held(); n != 0 {
			t.Errorf("%d chunks are out", n)
		}
		over.Store(true)
		submitters.Wait()
		if n := s.held(); n != 0 {
			t.Errorf("%d chunks were taken after the end", n)
		}
		r.Quiesce(context.Background()) // once more
	}
}

func TestGoroutinesAreAFunctionOfRoutes(t *testing.T) {
	a, b := openEngine(t), openEngine(t)
	here, there := a.memory(32<<20, false), b.memory(32<<20, true)
	before := runtime.NumGoroutine()
	r, s := a.dial(b)
	var ks []*task
	for range 1000 {
		k := newTask(xfer.Write, here, 0, 100000, uint64(there.Addr))
		ks = append(ks, k)
		s.add(k)
	}
	r.Kick()
	if n := runtime.NumGoroutine() - before; n > 1 {
		t.Errorf("%d goroutines for one route", n)
	}
	for _, k := range ks {
		<-k.ended
	}
}
