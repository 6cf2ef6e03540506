package moonpath_test

import (
	"bytes"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
)

// Nothing but the registration keeps the buffers: what the collector took would show as wrong bytes. The target's
// are touched by nobody but its engine, since the race detector does not see what is ordered by a socket.
func TestGoMemorySurvivesCollectionsUnderLoad(t *testing.T) {
	for _, path := range []string{"local", "tcp"} {
		t.Run(path, func(t *testing.T) {
			target, e := openEngine(t, nil), openEngine(t, nil)
			const buffers, size = 16, 40 << 10
			var there, here []*moonpath.Memory
			for i := range buffers {
				first := make([]byte, size)
				fill(first, byte(i))
				there = append(there, registerSlice(t, target, first))
				here = append(here, registerSlice(t, e, make([]byte, size)))
			}
			id, pin := open(t, e, target), pinned(t, e, path)
			defer collectGarbage()()

			b := newBatch(t, e, buffers)
			move := func(op moonpath.Op) {
				requests := make([]moonpath.Request, buffers)
				for i := range requests {
					requests[i] = moonpath.Request{Op: op, Pin: pin, Local: here[i].At(0), Len: size, Target: id, Remote: uint64(there[i].At(0))}
				}
				transfer(t, b, requests...)
			}
			want := make([]byte, size)
			for round := range 30 {
				move(moonpath.OpRead)
				for i := range buffers {
					fill(want, byte(round+i))
					if !bytes.Equal(here[i].Bytes(), want) {
						t.Fatalf("round %d, buffer %d: wrong bytes", round, i)
					}
					fill(here[i].Bytes(), byte(round+1+i))
				}
				move(moonpath.OpWrite)
			}
		})
	}
}

// collectGarbage runs the collector again and again, and takes what it frees, until stop is called.
func collectGarbage() (stop func()) {
	quit := make(chan struct{})
	var collector sync.WaitGroup
	collector.Go(func() {
		for churn := [][]byte(nil); ; runtime.GC() {
			select {
			case <-quit:
				return
			default:
				if churn = append(churn, bytes.Repeat([]byte{0xdb}, 40<<10)); len(churn) > 64 {
					churn = nil
				}
			}
		}
	})
	return func() {
		close(quit)
		collector.Wait()
	}
}

func TestUnregisteredGoMemoryIsLetGo(t *testing.T) {
	for name, end := range map[string]func(*moonpath.Engine, *moonpath.Memory) error{
		"Free":  func(_ *moonpath.Engine, m *moonpath.Memory) error { return m.Free() },
		"Close": func(e *moonpath.Engine, _ *moonpath.Memory) error { return e.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			e := openEngine(t, nil)
			collected := make(chan struct{})
			func() {
				b := make([]byte, 64<<10)
				runtime.AddCleanup(&b[0], func(struct{}) { close(collected) }, struct{}{})
				m := registerSlice(t, e, b)
				runtime.GC()
				select {
				case <-collected:
					t.Fatal("collected while it was registered")
				default:
				}
				if err := end(e, m); err != nil {
					t.Fatal(err)
				}
			}()
			eventually(t, 10*time.Second, "the buffer is collected", func() bool {
				runtime.GC()
				select {
				case <-collected:
					return true
				default:
					return false
				}
			})
			runtime.KeepAlive(e)
		})
	}
}
