package mem

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/moonpath-io/moonpath/xfer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// far is where ranges lie that no test touches: outside of what Go or the kernel hands out.
const far = xfer.Addr(1) << 45

// register adds specs or ends the test.
func register(t testing.TB, table *Table, specs ...Spec) []*Region {
	t.Helper()
	rs, err := table.Register(specs)
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// unregister is what the engine does, without transports.
func unregister(t testing.TB, table *Table, rs []*Region) {
	t.Helper()
	if err := table.Close(t.Context(), rs); err != nil {
		t.Fatal(err)
	}
	table.Remove(rs)
}

func starts(table *Table) (all []xfer.Addr) {
	for r := range table.All() {
		all = append(all, r.Addr)
	}
	return all
}

func TestRegisterChecksEveryRange(t *testing.T) {
	const base, size = far + 0x1000, 0x100
	for _, c := range []struct {
		name string
		spec Spec
		want xfer.Code
		text string
	}{
		{"disjoint", Spec{Addr: far, Len: 1}, xfer.OK, ""},
		{"ends where the other starts", Spec{Addr: base - 16, Len: 16}, xfer.OK, ""},
		{"starts where the other ends", Spec{Addr: base + size, Len: 16}, xfer.OK, ""},
		{"last byte is the other's first", Spec{Addr: base - 16, Len: 17}, xfer.AddressOverlapped, "overlaps the registration 0x200000001000 + 256"},
		{"first byte is the other's last", Spec{Addr: base + size - 1, Len: 1}, xfer.AddressOverlapped, "overlaps"},
		{"the same", Spec{Addr: base, Len: size}, xfer.AddressOverlapped, "overlaps"},
		{"inside", Spec{Addr: base + 1, Len: 1}, xfer.AddressOverlapped, "overlaps"},
		{"around", Spec{Addr: base - 1, Len: size + 2}, xfer.AddressOverlapped, "overlaps"},
		{"same start, longer", Spec{Addr: base, Len: 2 * size}, xfer.AddressOverlapped, "overlaps"},
		{"length 0", Spec{Addr: far}, xfer.InvalidArgument, "length is 0"},
		{"empty slice", Spec{Bytes: []byte{}}, xfer.InvalidArgument, "empty"},
		{"address 0", Spec{Len: 16}, xfer.InvalidArgument, "address 0"},
		{"first page", Spec{Addr: 4095, Len: 16}, xfer.InvalidArgument, "first page"},
		{"second page", Spec{Addr: 4096, Len: 16}, xfer.OK, ""},
		{"wraps", Spec{Addr: math.MaxUint64 - 15, Len: 17}, xfer.InvalidArgument, "address space"},
		{"end is 2^64", Spec{Addr: math.MaxUint64 - 15, Len: 16}, xfer.InvalidArgument, "address space"},
		{"last that fits", Spec{Addr: math.MaxUint64 - 16, Len: 16}, xfer.OK, ""},
		{"length above 2^63", Spec{Addr: far, Len: 1 << 63}, xfer.InvalidArgument, "address space"},
		{"node", Spec{Addr: far, Len: 1, Location: "cpu:1"}, xfer.OK, ""},
		{"segments", Spec{Addr: far, Len: 1, Location: "segments:4096:0,1"}, xfer.OK, ""},
		{"device", Spec{Addr: far, Len: 1, Location: "cuda:0"}, xfer.NotSupportedTransport, `"cuda:0" names device memory`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var table Table
			register(t, &table, Spec{Addr: base, Len: size})
			rs, err := table.Register([]Spec{c.spec})
			if got := xfer.CodeOf(err); got != c.want {
				t.Fatalf("code %v, want %v: %v", got.Name(), c.want.Name(), err)
			}
			if err == nil {
				if rs[0].Addr != c.spec.Addr || rs[0].Len != c.spec.Len || table.Count() != 2 {
					t.Errorf("registered %#x + %d, %d in the table", rs[0].Addr, rs[0].Len, table.Count())
				}
				return
			}
			var f *xfer.Fault
			if !errors.As(err, &f) || f.Stage != xfer.StageRegister || !strings.Contains(f.Detail, c.text) {
				t.Errorf("fault %+v, want stage register and %q", f, c.text)
			}
			if table.Count() != 1 {
				t.Errorf("%d in the table after a failure, want 1", table.Count())
			}
		})
	}
}

func TestRegisterFillsTheRegion(t *testing.T) {
	var table Table
	buffer := make([]byte, 32)
	rs := register(t, &table, Spec{Bytes: buffer, Remote: true}, Spec{Addr: far, Len: 64, Location: "cpu:1"})
	defer unregister(t, &table, rs)
	if a, b := rs[0], rs[1]; a.ID != 1 || b.ID != 2 || a.Location != "*" || b.Location != "cpu:1" || !a.Remote || b.Remote || a.Kind != xfer.HostMem || a.Len != 32 {
		t.Errorf("regions %+v and %+v", a, b)
	}
	if at := rs[1].At(10); at != far+10 {
		t.Errorf("At(10) is %#x", at)
	}
	rs[0].Bytes()[31] = 7
	if buffer[31] != 7 {
		t.Error("the region is not the buffer")
	}
}

func TestBatchRegistersAllOrNone(t *testing.T) {
	var table Table
	kept := register(t, &table, Spec{Addr: far, Len: 16})
	pinned := len(pins.all)
	for name, last := range map[string]Spec{
		"overlaps what is there":   {Addr: far + 8, Len: 16},
		"overlaps inside the call": {Addr: far + 0x2008, Len: 16},
		"length 0":                 {Addr: far + 0x3000},
		"device":                   {Bytes: make([]byte, 16), Location: "hip:0"},
	} {
		rs, err := table.Register([]Spec{{Addr: far + 0x1000, Len: 16}, {Bytes: make([]byte, 16)}, {Addr: far + 0x2000, Len: 16}, last})
		if err == nil || rs != nil {
			t.Errorf("%s: registered %v", name, rs)
		}
		if d := cmp.Diff([]xfer.Addr{far}, starts(&table)); d != "" {
			t.Errorf("%s: the table changed (-want +got):\n%s", name, d)
		}
		if len(pins.all) != pinned {
			t.Errorf("%s: %d buffers stay pinned", name, len(pins.all)-pinned)
		}
	}
	twice := make([]byte, 16)
	if _, err := table.Register([]Spec{{Bytes: twice}, {Bytes: twice[8:]}}); !errors.Is(err, xfer.AddressOverlapped) || len(pins.all) != pinned {
		t.Errorf("two views of one buffer: %v, %d pinned", err, len(pins.all)-pinned)
	}
	next := register(t, &table, Spec{Addr: far + 0x1000, Len: 16})
	if kept[0].ID != 1 || next[0].ID != 2 {
		t.Errorf("ids %d and %d, want 1 and 2", kept[0].ID, next[0].ID)
	}
}

func TestLookupWantsExactStarts(t *testing.T) {
	var table Table
	rs := register(t, &table, Spec{Addr: far, Len: 64}, Spec{Addr: far + 64, Len: 64})
	if got, err := table.Lookup([]xfer.Addr{far + 64, far}); err != nil || !slices.Equal(got, []*Region{rs[1], rs[0]}) {
		t.Errorf("Lookup: %v, %v", got, err)
	}
	for name, addrs := range map[string][]xfer.Addr{
		"inside a region":    {far, far + 1},
		"below all":          {far - 1},
		"after the last":     {far + 128},
		"one address twice":  {far, far + 64, far},
		"unknown after good": {far, 4096},
	} {
		if got, err := table.Lookup(addrs); !errors.Is(err, xfer.AddressNotRegistered) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestUnregisterTwiceIsAnError(t *testing.T) {
	var table Table
	rs := register(t, &table, Spec{Addr: far, Len: 64}, Spec{Addr: far + 64, Len: 64})
	if err := table.Close(t.Context(), rs[:1]); err != nil {
		t.Fatal(err)
	}
	// The region is in the table until it is removed; a second call must neither wait nor reopen it.
	if err := table.Close(t.Context(), []*Region{rs[1], rs[0]}); !errors.Is(err, xfer.AddressNotRegistered) {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := table.Acquire(far, 1); !errors.Is(err, xfer.AddressNotRegistered) {
		t.Errorf("the second call opened the region again: %v", err)
	}
	if l, err := table.Acquire(far+64, 1); err != nil {
		t.Errorf("the innocent region stays closed: %v", err)
	} else {
		l.Release(1)
	}
	if _, err := table.Register([]Spec{{Addr: far, Len: 64}}); !errors.Is(err, xfer.AddressOverlapped) {
		t.Errorf("registered over a region that is being unregistered: %v", err)
	}
	table.Remove(rs[:1])
	if _, err := table.Lookup([]xfer.Addr{far}); !errors.Is(err, xfer.AddressNotRegistered) {
		t.Errorf("found after removal: %v", err)
	}
	register(t, &table, Spec{Addr: far, Len: 32})
	if table.Count() != 2 {
		t.Errorf("%d in the table, want 2", table.Count())
	}
}

func TestAcquireFindsWholeRangesOnly(t *testing.T) {
	var table Table
	rs := register(t, &table, Spec{Addr: far, Len: 64}, Spec{Addr: far + 64, Len: 64}, Spec{Addr: far + 256, Len: 1})
	for _, c := range []struct {
		a    xfer.Addr
		n    uint64
		want *Region
	}{
		{far, 64, rs[0]}, {far, 1, rs[0]}, {far + 63, 1, rs[0]}, {far + 64, 64, rs[1]}, {far + 256, 1, rs[2]}, {far, 0, rs[0]},
		{far, 65, nil}, {far + 63, 2, nil}, {far - 1, 1, nil}, {far + 128, 1, nil}, {far + 255, 1, nil}, {far + 257, 0, nil},
		{far + 256, math.MaxUint64, nil}, {math.MaxUint64, math.MaxUint64, nil}, {0, 1, nil},
	} {
		l, err := table.Acquire(c.a, c.n)
		if l.Region != c.want || (err == nil) != (c.want != nil) {
			t.Errorf("Acquire(%#x, %d): %v, %v", uint64(c.a), c.n, l.Region, err)
		}
		if err == nil {
			l.Release(1)
		} else if !errors.Is(err, xfer.AddressNotRegistered) {
			t.Errorf("Acquire(%#x, %d): %v", uint64(c.a), c.n, err)
		}
	}
	if l, err := table.AcquireAt(far + 127); err != nil || l.Region != rs[1] {
		t.Errorf("AcquireAt: %v, %v", l.Region, err)
	}
	var empty Table
	if _, err := empty.Acquire(far, 1); !errors.Is(err, xfer.AddressNotRegistered) {
		t.Errorf("from an empty table: %v", err)
	}
}

func TestGoMemoryIsPinnedUntilRemoved(t *testing.T) {
	var table Table
	before := len(pins.all)
	rs := register(t, &table, Spec{Bytes: []byte("moon")}, Spec{Bytes: []byte("path")})
	runtime.GC()
	if a, b := string(rs[0].Bytes()), string(rs[1].Bytes()); a+b != "moonpath" {
		t.Errorf("memory reads %q and %q", a, b)
	}
	if n := len(pins.all) - before; n != 2 {
		t.Errorf("%d pinned, want 2", n)
	}
	if err := table.Close(t.Context(), rs); err != nil {
		t.Fatal(err)
	}
	if n := len(pins.all) - before; n != 2 {
		t.Errorf("%d pinned between Close and Remove, when a device may still know the memory; want 2", n)
	}
	table.Remove(rs)
	if n := len(pins.all) - before; n != 0 {
		t.Errorf("%d pinned after Remove", n)
	}
}

// The runtime ends the process when it collects a pinner that pins something.
func TestDroppedTableDoesNotEndTheProcess(t *testing.T) {
	func() { register(t, new(Table), Spec{Bytes: make([]byte, 64)}) }()
	ended := make(chan struct{})
	runtime.SetFinalizer(new([64]byte), func(*[64]byte) { close(ended) })
	for range 10 {
		runtime.GC() // finalizers of one cycle run before those of the next
		select {
		case <-ended:
			runtime.GC()
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Error("no finalizer ran in ten collections, so this test shows nothing")
}

// Every version that a reader holds stays as it was.
func TestVersionsDoNotChange(t *testing.T) {
	var table Table
	first := register(t, &table, Spec{Addr: far, Len: 16}, Spec{Addr: far + 32, Len: 16})
	all := table.All()
	unregister(t, &table, first[:1])
	register(t, &table, Spec{Addr: far + 64, Len: 16})
	var seen []xfer.Addr
	for r := range all {
		seen = append(seen, r.Addr)
	}
	if d := cmp.Diff([]xfer.Addr{far, far + 32}, seen); d != "" {
		t.Errorf("the older version (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]xfer.Addr{far + 32, far + 64}, starts(&table)); d != "" {
		t.Errorf("the newest version (-want +got):\n%s", d)
	}
	for r := range table.All() {
		if r.Addr != far+32 {
			t.Error("the walk went on after it was stopped")
		}
		break
	}
}
