package moonpath_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/moonpath-io/moonpath"
)

// openEngine opens an engine on loopback that ends with the test.
func openEngine(t testing.TB, change func(*moonpath.Options)) *moonpath.Engine {
	t.Helper()
	o := moonpath.Options{Host: "127.0.0.1", Environ: []string{}}
	if change != nil {
		change(&o)
	}
	e, err := moonpath.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

func alloc(t testing.TB, e *moonpath.Engine, n uint64) *moonpath.Memory {
	t.Helper()
	m, err := e.Alloc(n, moonpath.AllocOptions{Populate: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestWriteAndReadOverTCP(t *testing.T) {
	target, source := openEngine(t, nil), openEngine(t, nil)
	there, here := alloc(t, target, 64<<20), alloc(t, source, 64<<20)
	id, err := source.OpenSegment(target.Name())
	if err != nil {
		t.Fatal(err)
	}
	pin, err := source.Pin("tcp")
	if err != nil {
		t.Fatal(err)
	}
	b, err := source.NewBatch(moonpath.BatchOptions{Capacity: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, n := range []uint64{1, 4096, 65537, 1 << 20, 5<<20 + 3, 64 << 20} {
		for i := range here.Bytes()[:n] {
			here.Bytes()[i] = byte(uint64(i) * n >> 3)
		}
		want := bytes.Clone(here.Bytes()[:n])
		transfer(t, b, moonpath.Request{Op: moonpath.OpWrite, Pin: pin, Local: here.At(0), Len: n, Target: id, Remote: uint64(there.At(0))})
		if !bytes.Equal(there.Bytes()[:n], want) {
			t.Fatalf("%d bytes written are not there", n)
		}
		clear(here.Bytes()[:n])
		transfer(t, b, moonpath.Request{Op: moonpath.OpRead, Pin: pin, Local: here.At(0), Len: n, Target: id, Remote: uint64(there.At(0))})
		if !bytes.Equal(here.Bytes()[:n], want) {
			t.Fatalf("%d bytes read are wrong", n)
		}
	}
}

func transfer(t testing.TB, b *moonpath.Batch, rs ...moonpath.Request) {
	t.Helper()
	if err := b.Reset(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Submit(t.Context(), rs); err != nil {
		t.Fatal(err)
	}
	if err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}
