package moonpath_test

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

// TestAbandonedBatchesEndWithTheirEngine leaves ten thousand batches behind without closing one, a hundred of them with
// a request that nobody answers. Their memory is bounded, and the engine's Close leaves nothing of them.
func TestAbandonedBatchesEndWithTheirEngine(t *testing.T) {
	const count, perBatch = 10_000, 4 << 10
	before := settledGoroutines(t)
	heap := heapBytes()
	func() {
		e := openEngine(t, nil)
		target := openEngine(t, nil)
		there, here := alloc(t, target, 4096), alloc(t, e, 4096)
		peer := newRawPeer(t, nil)
		good := moonpath.Request{Op: moonpath.OpWrite, Pin: pinned(t, e, "tcp"), Local: here.At(0), Len: 512, Target: open(t, e, target), Remote: uint64(there.At(0))}
		bad := moonpath.Request{Op: moonpath.OpRead, Local: here.At(1024), Len: 512, Target: openName(t, e, peer.name), Remote: rawMemory}
		for i := range count {
			r := good
			if i%100 == 0 {
				r = bad
			}
			if i%2 == 0 {
				b, err := e.NewBatch(moonpath.BatchOptions{Capacity: 1})
				if err != nil {
					t.Fatalf("batch %d: %v", i, err)
				}
				submit(t, b, r)
				continue
			}
			if err := e.SubmitTransfer(batchID(t, e, 1), []moonpath.Request{r}); err != nil {
				t.Fatalf("batch %d: %v", i, err)
			}
		}
		if grown := heapBytes() - heap; grown > count*perBatch {
			t.Errorf("%d batches take %d bytes", count, grown)
		} else {
			t.Logf("a batch that is never closed takes %d bytes", grown/count)
		}
		peer.close() // or Close waits for it
		for _, e := range []*moonpath.Engine{e, target} {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	if after := settledGoroutines(t); after > before {
		t.Errorf("%d goroutines are left", after-before)
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestUnregisterUnderTrafficWaitsOrSaysBusy ends registrations that are in use all the time, at both ends. When it has
// succeeded the memory is the caller's again: nothing of what goes on may touch it.
func TestUnregisterUnderTrafficWaitsOrSaysBusy(t *testing.T) {
	const size = 1 << 20
	for _, path := range []string{"local", "tcp"} {
		for _, end := range []string{"initiator", "target"} {
			t.Run(path+"/"+end, func(t *testing.T) {
				target, e := openEngine(t, nil), openEngine(t, nil)
				owner, op, want := e, moonpath.OpRead, xfer.AddressNotRegistered
				if end == "target" {
					owner, op, want = target, moonpath.OpWrite, xfer.Refused
				}
				lent := newMapping(t, owner, size)
				kept, buffer := newMapping(t, map[bool]*moonpath.Engine{true: e, false: target}[owner == target], size), mapped(t, lent)
				copy(mapped(t, kept), filled(size, 0x11))
				local, remote := lent, kept
				if owner == target {
					local, remote = kept, lent
				}
				requests := make([]moonpath.Request, 16)
				for i := range requests {
					off := uint64(i) * size / 16
					requests[i] = moonpath.Request{Op: op, Pin: pinned(t, e, path), Local: moonpath.Addr(local.addr + off), Len: size / 16, Target: open(t, e, target), Remote: remote.addr + off}
				}
				for range 10 {
					f := startTraffic(t, e, requests)
					err := owner.UnregisterLocalMemory(moonpath.Addr(lent.addr))
					if err == nil {
						copy(buffer, filled(size, poison))
						requireFault(t, <-f.ended, want)
						if !bytes.Equal(buffer, filled(size, poison)) {
							t.Fatal("memory was written after its registration had ended")
						}
						err = owner.RegisterLocalMemory(moonpath.Addr(lent.addr), size, "*", true)
					} else {
						requireFault(t, err, xfer.BatchBusy)
						close(f.stop)
						err = <-f.ended
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// TestBuffersAreReusedAtOnce uses the source of a write for something else, and looks at the destination of a read, in
// the moment in which the task has ended.
func TestBuffersAreReusedAtOnce(t *testing.T) {
	const block, count = 16 << 10, 64
	p := startPeer(t, block*count)
	e := openEngine(t, nil)
	here, id := alloc(t, e, block*count), openName(t, e, p.Name)
	b := newBatch(t, e, count)
	requests := func(op moonpath.Op) []moonpath.Request {
		rs := make([]moonpath.Request, count)
		for i := range rs {
			off := uint64(i) * block
			rs[i] = moonpath.Request{Op: op, Local: here.At(off), Len: block, Target: id, Remote: p.Addr + off}
		}
		return rs
	}
	deadline := time.Now().Add(time.Second)
	for round := 0; time.Now().Before(deadline); round++ {
		value := byte(round % poison)
		copy(here.Bytes(), filled(block*count, value))
		transfer(t, b, requests(moonpath.OpWrite)...)
		copy(here.Bytes(), filled(block*count, poison))
		if !bytes.Equal(p.memory, filled(block*count, value)) {
			t.Fatalf("round %d: the peer has other bytes than those that were written", round)
		}
		transfer(t, b, requests(moonpath.OpRead)...)
		if !bytes.Equal(here.Bytes(), filled(block*count, value)) {
			t.Fatalf("round %d: a read has completed without its bytes", round)
		}
	}
}
