package interop

import (
	"testing"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/interop/cxx"
	"github.com/moonpath-io/moonpath/interop/pattern"
	"github.com/moonpath-io/moonpath/xfer"
)

// manyBuffers make a descriptor of some 640 kB, below the MiB that a published engine reads.
const (
	manyBuffers = 10_000
	bufferSize  = 512 // each followed by as much that is not registered
	stride      = 2 * bufferSize
)

// touched are the buffers that the tests below move bytes to and from.
var touched = []uint64{0, 1, 4_999, manyBuffers - 1}

func TestCxxTargetWithManyBuffers(t *testing.T) {
	peer := cxx.Start(t)
	start, err := peer.Map(manyBuffers * stride)
	if err != nil {
		t.Fatal(err)
	}
	addrs := make([]uint64, manyBuffers)
	for i := range addrs {
		addrs[i] = start + uint64(i)*stride
	}
	if err := peer.RegisterBatch(addrs, bufferSize); err != nil {
		t.Fatal(err)
	}
	engine := openEngine(t, nil)
	local := alloc(t, engine, bufferSize)
	id := openSegment(t, engine, peer.Name)
	d, err := engine.Segment(id)
	if err != nil || len(d.Buffers) != manyBuffers {
		t.Fatalf("descriptor with %d buffers, want %d (%v)", len(d.Buffers), manyBuffers, err)
	}
	for _, i := range touched {
		payload := pattern.Bytes(60+i, bufferSize)
		copy(local.Bytes(), payload)
		if err := engine.Write(bounded(t), id, local.At(0), addrs[i], bufferSize); err != nil {
			t.Fatal(err)
		}
		wantCxx(t, peer, "buffer", addrs[i], payload)
		clear(local.Bytes())
		if err := engine.Read(bounded(t), id, local.At(0), addrs[i], bufferSize); err != nil {
			t.Fatal(err)
		}
		if difference := firstDifference(local.Bytes(), payload); difference != "" {
			t.Errorf("buffer %d: %s", i, difference)
		}
		wantFault(t, "write between two buffers", engine.Write(bounded(t), id, local.At(0), addrs[i]+bufferSize, 1), xfer.Refused)
	}
}

func TestMoonpathTargetWithManyBuffers(t *testing.T) {
	peer := cxx.Start(t)
	local := allocCxx(t, peer, bufferSize)
	engine := openEngine(t, nil)
	memory := alloc(t, engine, manyBuffers*stride)
	// Only its memory is wanted: it stays mapped until the engine ends.
	if err := engine.UnregisterLocalMemory(memory.At(0)); err != nil {
		t.Fatal(err)
	}
	buffers := make([]moonpath.BufferEntry, manyBuffers)
	for i := range buffers {
		buffers[i] = moonpath.BufferEntry{Addr: memory.At(uint64(i) * stride), Length: bufferSize}
	}
	if err := engine.RegisterLocalMemoryBatch(buffers, "*"); err != nil {
		t.Fatal(err)
	}
	if first, err := peer.FirstBuffer(engine.Name()); err != nil || first != uint64(buffers[0].Addr) {
		t.Fatalf("first buffer %#x, want %#x (%v)", first, buffers[0].Addr, err)
	}
	for _, i := range touched {
		remote := uint64(buffers[i].Addr)
		fillCxx(t, peer, local, bufferSize, 60+i)
		if err := peer.Transfer(cxx.Write, engine.Name(), local, remote, bufferSize); err != nil {
			t.Fatal(err)
		}
		payload := pattern.Bytes(60+i, bufferSize)
		if difference := firstDifference(memory.Bytes()[i*stride:], payload); difference != "" {
			t.Errorf("buffer %d: %s", i, difference)
		}
		if err := peer.Zero(local, bufferSize); err != nil {
			t.Fatal(err)
		}
		if err := peer.Transfer(cxx.Read, engine.Name(), local, remote, bufferSize); err != nil {
			t.Fatal(err)
		}
		wantCxx(t, peer, "read", local, payload)
	}
}

func TestCxxRegistersAfterItWasOpened(t *testing.T) {
	peer := cxx.Start(t)
	allocCxx(t, peer, 4096)
	engine := openEngine(t, nil)
	local := alloc(t, engine, 4*mib)
	id := openSegment(t, engine, peer.Name)
	for i, size := range []uint64{100, 4 * mib} {
		remote := allocCxx(t, peer, size) // in no descriptor that the engine has
		payload := pattern.Bytes(uint64(70+i), int(size))
		copy(local.Bytes(), payload)
		if err := engine.Write(bounded(t), id, local.At(0), remote, size); err != nil {
			t.Fatal(err)
		}
		wantCxx(t, peer, "write", remote, payload)
		clear(local.Bytes())
		if err := engine.Read(bounded(t), id, local.At(0), remote, size); err != nil {
			t.Fatal(err)
		}
		if difference := firstDifference(local.Bytes(), payload); difference != "" {
			t.Errorf("read: %s", difference)
		}
		eventually(t, "the new buffer in the engine's descriptor", func() bool {
			if err := engine.Read(bounded(t), id, local.At(0), remote, 1); err != nil {
				t.Fatal(err)
			}
			d, err := engine.Segment(id)
			return err == nil && d.Find(remote) != nil
		})
	}
}

func TestMoonpathRegistersAfterItWasOpened(t *testing.T) {
	peer := cxx.Start(t)
	local := allocCxx(t, peer, mib)
	engine := openEngine(t, nil)
	first := alloc(t, engine, 4096)
	if got, err := peer.FirstBuffer(engine.Name()); err != nil || got != uint64(first.At(0)) {
		t.Fatalf("first buffer %#x, want %#x (%v)", got, first.At(0), err)
	}
	late := alloc(t, engine, mib)
	fillCxx(t, peer, local, mib, 80)
	if err := peer.Transfer(cxx.Write, engine.Name(), local, uint64(late.At(0)), mib); err != nil {
		t.Fatal(err)
	}
	if difference := firstDifference(late.Bytes(), pattern.Bytes(80, mib)); difference != "" {
		t.Error(difference)
	}
	if err := late.Free(); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "write to memory that was freed", peer.Transfer(cxx.Write, engine.Name(), local, uint64(late.At(0)), mib), -1)
}
