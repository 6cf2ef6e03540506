package moonpath_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

// TestClosingDoesNotWaitForAPeerThatStandsStill ends a batch, a registration and an engine while the peer of their
// requests is frozen. Nothing of them waits for it, and what it still receives are bytes from before.
func TestClosingDoesNotWaitForAPeerThatStandsStill(t *testing.T) {
	const limit = 3 * time.Second
	for name, end := range map[string]func(*moonpath.Engine, *moonpath.Batch, *moonpath.Memory) error{
		"Batch.Close": func(_ *moonpath.Engine, b *moonpath.Batch, _ *moonpath.Memory) error { return b.Close() },
		"Memory.Free after Batch.Cancel": func(_ *moonpath.Engine, b *moonpath.Batch, m *moonpath.Memory) error {
			b.Cancel()
			return m.Free()
		},
		"CloseSegment": func(e *moonpath.Engine, b *moonpath.Batch, _ *moonpath.Memory) error {
			err := e.CloseSegment(1)
			b.Cancel()
			_ = b.Wait(t.Context()) // canceled
			return err
		},
		"Engine.Close": func(e *moonpath.Engine, _ *moonpath.Batch, _ *moonpath.Memory) error { return e.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPeer(t, mixedBytes)
			e := openEngine(t, nil)
			source := make([]byte, mixedBytes) // which stays there whatever is ended
			copy(source, filled(mixedBytes, 0x11))
			m, err := e.Register(source, moonpath.RegisterOptions{})
			if err != nil {
				t.Fatal(err)
			}
			requests := mixed(m, openName(t, e, p.Name), p.Addr, 1000)
			for i := range requests {
				requests[i].Op = moonpath.OpWrite
			}
			b, err := e.NewBatch(moonpath.BatchOptions{Capacity: len(requests)})
			if err != nil {
				t.Fatal(err)
			}
			submit(t, b, requests...)
			if err := b.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.freeze(t)
			submit(t, b, requests...)
			start := time.Now()
			if err := end(e, b, m); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took > limit {
				t.Errorf("took %v, want at most %v", took, limit)
			} else {
				t.Logf("took %v", took)
			}
			if name != "Batch.Close" { // whose tasks are gone with it
				for i := range b.Len() {
					if s, err := b.Status(i); err == nil && s.State != xfer.Canceled && s.State != xfer.Failed {
						t.Fatalf("request %d: %+v", i, s)
					}
				}
			}
			copy(source, filled(mixedBytes, poison))
			p.thaw(t)
			other := openEngine(t, nil)
			here := alloc(t, other, mixedBytes)
			if err := other.Read(t.Context(), openName(t, other, p.Name), here.At(0), p.Addr, mixedBytes); err != nil {
				t.Fatal(err)
			}
			if bytes.IndexByte(p.memory, poison) >= 0 {
				t.Error("memory was sent after it had been given back")
			}
		})
	}
}
