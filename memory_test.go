package moonpath_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/xfer"
)

// foreign makes memory that no engine knows, as the caller of RegisterLocalMemory brings it.
func foreign(t testing.TB, n uint64) (moonpath.Addr, []byte) {
	t.Helper()
	m, err := mem.Map(n, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Free(); err != nil {
			t.Errorf("unmap: %v", err)
		}
	})
	return mem.AddrOf(m.Bytes()), m.Bytes()
}

// published returns start and length of what an engine tells its peers, as a peer reads it.
func published(t testing.TB, e *moonpath.Engine) (ranges [][2]uint64) {
	t.Helper()
	reader := openEngine(t, nil)
	d, err := reader.Segment(open(t, reader, e))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range d.Buffers {
		ranges = append(ranges, [2]uint64{b.Addr, b.Len})
	}
	return ranges
}

func TestRegisterRefusesWhatItCannotServe(t *testing.T) {
	e := openEngine(t, nil)
	a, _ := foreign(t, 64<<10)
	if err := e.RegisterLocalMemory(a+16384, 16384, "cpu:0", true); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		addr     moonpath.Addr
		length   uint64
		location string
		code     moonpath.Code
	}{
		{"length 0", a, 0, "*", xfer.InvalidArgument},
		{"address 0", 0, 4096, "*", xfer.InvalidArgument},
		{"wraps by one byte", math.MaxUint64, 2, "*", xfer.InvalidArgument},
		{"longer than the address space", a, math.MaxUint64, "*", xfer.InvalidArgument},
		{"negative length", a, 1 << 63, "*", xfer.InvalidArgument},
		{"the same", a + 16384, 16384, "*", xfer.AddressOverlapped},
		{"inside", a + 20000, 1, "*", xfer.AddressOverlapped},
		{"around", a, 64 << 10, "*", xfer.AddressOverlapped},
		{"first byte", a, 16385, "*", xfer.AddressOverlapped},
		{"last byte", a + 32767, 4096, "*", xfer.AddressOverlapped},
		{"GPU memory", a, 4096, "cuda:0", xfer.NotSupportedTransport},
		{"NPU memory", a, 4096, "npu:3", xfer.NotSupportedTransport},
		{"nonsense location", a, 4096, "shelf", xfer.NotSupportedTransport},
	} {
		t.Run(c.name, func(t *testing.T) {
			requireFault(t, e.RegisterLocalMemory(c.addr, c.length, c.location, true), c.code)
			// As one of several, it takes the others down with it.
			requireFault(t, e.RegisterLocalMemoryBatch([]moonpath.BufferEntry{{Addr: a, Length: 512}, {Addr: c.addr, Length: c.length}}, c.location), c.code)
		})
	}
	requireFault(t, e.RegisterLocalMemoryBatch([]moonpath.BufferEntry{{Addr: a, Length: 512}, {Addr: a + 511, Length: 512}}, "*"), xfer.AddressOverlapped)
	want := [][2]uint64{{uint64(a) + 16384, 16384}}
	if got := published(t, e); !cmp.Equal(got, want) {
		t.Errorf("published %x, want %x", got, want)
	}
	if err := e.UnregisterLocalMemory(a); !errors.Is(err, xfer.AddressNotRegistered) {
		t.Errorf("something stayed registered at %#x: %v", uint64(a), err)
	}
}

func TestAllocAndRegisterRefuseEmptyMemory(t *testing.T) {
	e := openEngine(t, nil)
	for name, call := range map[string]func() (*moonpath.Memory, error){
		"Alloc of nothing":        func() (*moonpath.Memory, error) { return e.Alloc(0, moonpath.AllocOptions{}) },
		"Alloc of everything":     func() (*moonpath.Memory, error) { return e.Alloc(math.MaxUint64, moonpath.AllocOptions{}) },
		"Register of nil":         func() (*moonpath.Memory, error) { return e.Register(nil, moonpath.RegisterOptions{}) },
		"Register of empty":       func() (*moonpath.Memory, error) { return e.Register([]byte{}, moonpath.RegisterOptions{}) },
		"Register of empty array": func() (*moonpath.Memory, error) { return e.Register(make([]byte, 0, 4096), moonpath.RegisterOptions{}) },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := call()
			requireFault(t, err, xfer.InvalidArgument)
		})
	}
	_, err := e.Alloc(4096, moonpath.AllocOptions{Location: "cuda:0"})
	requireFault(t, err, xfer.NotSupportedTransport)
	_, err = e.Alloc(1<<62, moonpath.AllocOptions{})
	requireFault(t, err, xfer.Memory)
}

func TestUnregisterChangesNothingIfOneAddressIsUnknown(t *testing.T) {
	e, peer := openEngine(t, nil), openEngine(t, nil)
	a, there := foreign(t, 4*4096)
	here := alloc(t, peer, 4096)
	for i := range moonpath.Addr(3) {
		if err := e.RegisterLocalMemory(a+i*4096, 4096, "*", true); err != nil {
			t.Fatal(err)
		}
	}
	before := published(t, e)
	for name, addrs := range map[string][]moonpath.Addr{
		"unknown last":  {a, a + 4096, a + 3*4096},
		"unknown first": {1, a},
		"not the start": {a, a + 4097},
		"named twice":   {a, a + 4096, a},
	} {
		t.Run(name, func(t *testing.T) {
			requireFault(t, e.UnregisterLocalMemoryBatch(addrs), xfer.AddressNotRegistered)
			if after := published(t, e); !cmp.Equal(before, after) {
				t.Errorf("published %x, want %x as before", after, before)
			}
			requireFault(t, e.RegisterLocalMemory(a, 4096, "*", true), xfer.AddressOverlapped)
			fill(here.Bytes(), byte(len(name)))
			if err := peer.Write(t.Context(), open(t, peer, e), here.At(0), uint64(a), 4096); err != nil || !bytes.Equal(there[:4096], here.Bytes()) {
				t.Errorf("the memory does not serve any more: %v", err)
			}
		})
	}
	if err := e.UnregisterLocalMemoryBatch([]moonpath.Addr{a + 4096, a, a + 2*4096}); err != nil {
		t.Fatal(err)
	}
	if left := published(t, e); len(left) != 0 {
		t.Errorf("published %x after all was unregistered", left)
	}
	requireFault(t, e.UnregisterLocalMemory(a), xfer.AddressNotRegistered)
	if err := e.RegisterLocalMemory(a, 4*4096, "*", true); err != nil {
		t.Errorf("register again: %v", err)
	}
}

func TestFreeingMemoryTwiceIsAnError(t *testing.T) {
	e := openEngine(t, nil)
	m, pinned := alloc(t, e, 4096), registerSlice(t, e, make([]byte, 4096))
	for _, m := range []*moonpath.Memory{m, pinned} {
		if err := m.Free(); err != nil {
			t.Fatal(err)
		}
		requireFault(t, m.Free(), xfer.AddressNotRegistered)
	}
}

func registerSlice(t testing.TB, e *moonpath.Engine, b []byte) *moonpath.Memory {
	t.Helper()
	m, err := e.Register(b, moonpath.RegisterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestPrivateMemoryIsNeitherPublishedNorServed(t *testing.T) {
	for _, path := range []string{"local", "tcp"} {
		t.Run(path, func(t *testing.T) {
			e, peer := openEngine(t, nil), openEngine(t, nil)
			shared, byAddress := alloc(t, e, 4096), moonpath.Addr(0)
			byAddress, _ = foreign(t, 4096)
			if err := e.RegisterLocalMemory(byAddress, 4096, "*", false); err != nil {
				t.Fatal(err)
			}
			slice, err := e.Register(make([]byte, 4096), moonpath.RegisterOptions{LocalOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			private := []moonpath.Addr{byAddress, slice.At(0), allocPrivate(t, e, 4096).At(0)}

			if got, want := published(t, e), [][2]uint64{{uint64(shared.At(0)), 4096}}; !cmp.Equal(got, want) {
				t.Errorf("published %x, want %x", got, want)
			}
			here := alloc(t, peer, 4096)
			id, b, pin := open(t, peer, e), newBatch(t, peer, 1), pinned(t, peer, path)
			for _, addr := range private {
				for _, op := range []moonpath.Op{moonpath.OpRead, moonpath.OpWrite} {
					submit(t, b, moonpath.Request{Op: op, Pin: pin, Local: here.At(0), Len: 64, Target: id, Remote: uint64(addr)})
					requireFault(t, b.Wait(t.Context()), xfer.Refused)
				}
				// Its owner may.
				if err := e.Write(t.Context(), moonpath.LocalSegment, shared.At(0), uint64(addr), 64); err != nil {
					t.Errorf("the owner cannot reach its own memory: %v", err)
				}
				if err := e.Write(t.Context(), moonpath.LocalSegment, addr, uint64(shared.At(0)), 64); err != nil {
					t.Errorf("the owner cannot send its own memory: %v", err)
				}
			}
		})
	}
}

// A request may lie across registrations, on both sides, as long as they touch.
func TestRequestsAreCutAtBordersOfRegistrations(t *testing.T) {
	for _, path := range []string{"local", "tcp"} {
		for _, big := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/big %v", path, big), func(t *testing.T) {
				n := uint64(12000)
				if big {
					n = 5 << 20
				}
				e, peer := openEngine(t, nil), openEngine(t, nil)
				local, here := foreign(t, n)
				remote, there := foreign(t, n)
				registerAt(t, peer, local, n, 1, n/3, n/2+13)
				registerAt(t, e, remote, n, n/4+1, n/2, n-1)
				id, b, pin := open(t, peer, e), newBatch(t, peer, 1), pinned(t, peer, path)
				for _, op := range []moonpath.Op{moonpath.OpWrite, moonpath.OpRead} {
					fill(here, byte(op)+1)
					fill(there, byte(op)+77)
					want := bytes.Clone(here)
					if op == moonpath.OpRead {
						want = bytes.Clone(there)
					}
					transfer(t, b, moonpath.Request{Op: op, Pin: pin, Local: local, Len: n, Target: id, Remote: uint64(remote)})
					if !bytes.Equal(here, want) || !bytes.Equal(there, want) {
						t.Errorf("%s across borders: bytes differ", op)
					}
					if s, err := b.Status(0); err != nil || s.Bytes != n {
						t.Errorf("%+v, %v, want %d bytes", s, err, n)
					}
					if got := b.Report().Requests[0].Slices; got < 7 {
						t.Errorf("%d slices for a request across six borders", got)
					}
				}
			})
		}
	}
}

// registerAt registers n bytes as several registrations that touch at the given offsets.
func registerAt(t testing.TB, e *moonpath.Engine, a moonpath.Addr, n uint64, borders ...uint64) {
	t.Helper()
	var entries []moonpath.BufferEntry
	from := uint64(0)
	for _, to := range append(borders, n) {
		entries = append(entries, moonpath.BufferEntry{Addr: a + moonpath.Addr(from), Length: to - from})
		from = to
	}
	if err := e.RegisterLocalMemoryBatch(entries, "*"); err != nil {
		t.Fatal(err)
	}
}

func TestUnregisterWaitsForTransfersThatUseTheMemory(t *testing.T) {
	e := openEngine(t, func(o *moonpath.Options) { o.Settings = map[string]string{"transfer.timeout": "50ms"} })
	stalled := newRawPeer(t, nil)
	memory := alloc(t, e, 4096)
	b := newBatch(t, e, 1)
	submit(t, b, moonpath.Request{Op: moonpath.OpRead, Local: memory.At(0), Len: 4096, Target: openName(t, e, stalled.name), Remote: rawMemory})

	err := e.UnregisterLocalMemory(memory.At(0))
	requireFault(t, err, xfer.BatchBusy)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error does not say that time ran out: %v", err)
	}
	if got := published(t, e); len(got) != 1 {
		t.Errorf("the memory is not published any more, but could not be unregistered: %x", got)
	}

	unregistered := make(chan error, 1)
	go func() { unregistered <- e.UnregisterLocalMemory(memory.At(0)) }()
	b.Cancel()
	if err := b.Wait(t.Context()); !errors.Is(err, xfer.Interrupted) {
		t.Errorf("the canceled transfer ended with %v", err)
	}
	if err := <-unregistered; err != nil {
		if err := e.UnregisterLocalMemory(memory.At(0)); err != nil {
			t.Errorf("unregister after the transfer has ended: %v", err)
		}
	}
}

// What peers were told is checked again when they come: memory that was unregistered is refused although their
// description still has it.
func TestUnregisteredMemoryIsRefusedToPeersWithAnOldDescription(t *testing.T) {
	for _, path := range []string{"local", "tcp"} {
		e, peer := openEngine(t, nil), openEngine(t, nil)
		there, here := alloc(t, e, 4096), alloc(t, peer, 4096)
		id, b, pin := open(t, peer, e), newBatch(t, peer, 1), pinned(t, peer, path)
		r := moonpath.Request{Op: moonpath.OpWrite, Pin: pin, Local: here.At(0), Len: 64, Target: id, Remote: uint64(there.At(0))}
		transfer(t, b, r)
		if err := e.UnregisterLocalMemory(there.At(0)); err != nil {
			t.Fatal(err)
		}
		submit(t, b, r)
		requireFault(t, b.Wait(t.Context()), xfer.Refused)
	}
}

func TestSyncSegmentCacheFindsNewBuffers(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	id := open(t, e, target)
	there := alloc(t, target, 4096)
	find := func() *segment.Buffer {
		d, err := e.Segment(id)
		if err != nil {
			t.Fatal(err)
		}
		return d.Find(uint64(there.At(0)))
	}
	if find() != nil {
		t.Fatal("the buffer was seen before anybody asked again")
	}
	if err := e.SyncSegmentCache(target.Name()); err != nil {
		t.Fatal(err)
	}
	if b := find(); b == nil || b.Len != 4096 {
		t.Errorf("after the refresh the buffer is %+v", b)
	}
	if err := there.Free(); err != nil {
		t.Fatal(err)
	}
	if err := e.SyncSegmentCache(""); err != nil {
		t.Fatal(err)
	}
	if b := find(); b != nil {
		t.Errorf("the buffer that was freed is still seen: %+v", b)
	}
}

// A request for memory that was registered after the description was fetched is served, and has the
// description fetched again.
func TestMemoryRegisteredLaterIsServedAtOnce(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	id, here := open(t, e, target), alloc(t, e, 4096)
	there := alloc(t, target, 4096)
	b := newBatch(t, e, 1)
	fill(here.Bytes(), 5)
	transfer(t, b, moonpath.Request{Op: moonpath.OpWrite, Pin: pinned(t, e, "tcp"), Local: here.At(0), Len: 4096, Target: id, Remote: uint64(there.At(0))})
	if !bytes.Equal(here.Bytes(), there.Bytes()) {
		t.Error("the bytes are not there")
	}
	eventually(t, 5*time.Second, "the description is fetched again", func() bool {
		d, err := e.Segment(id)
		return err == nil && d.Find(uint64(there.At(0))) != nil
	})
}
