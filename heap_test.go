package moonpath_test

import (
	"bytes"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
)

// Nothing but the registration keeps the buffers: what the collector took or moved would show as wrong bytes.
func TestGoMemorySurvivesCollectionsUnderLoad(t *testing.T) {
	for _, path := range []string{"local", "tcp"} {
		t.Run(path, func(t *testing.T) {
			target, e := openEngine(t, nil), openEngine(t, nil)
			const buffers, size = 16, 40 << 10
			var there, here []*moonpath.Memory
			for range buffers {
				there = append(there, registerSlice(t, target, make([]byte, size)))
				here = append(here, registerSlice(t, e, make([]byte, size)))
			}
			id, pin := open(t, e, target), pinned(t, e, path)

			stop := make(chan struct{})
			var collector sync.WaitGroup
			collector.Go(func() {
				for churn := [][]byte(nil); ; runtime.GC() {
					select {
					case <-stop:
						return
					default:
						churn = append(churn, bytes.Repeat([]byte{0xdb}, size)) // takes what was freed
						if len(churn) > 64 {
							churn = nil
						}
					}
				}
			})
			defer collector.Wait()
			defer close(stop)

			b := newBatch(t, e, buffers)
			for round := range 60 {
				requests := make([]moonpath.Request, buffers)
				for i := range requests {
					requests[i] = moonpath.Request{Op: moonpath.Op(round % 2), Pin: pin, Local: here[i].At(0), Len: size, Target: id, Remote: uint64(there[i].At(0))}
					fill(here[i].Bytes(), byte(round+i))
					fill(there[i].Bytes(), byte(round+i+100))
				}
				transfer(t, b, requests...)
				want := make([]byte, size)
				for i := range requests {
					fill(want, byte(round+i))
					if requests[i].Op == moonpath.OpRead {
						fill(want, byte(round+i+100))
					}
					if !bytes.Equal(here[i].Bytes(), want) || !bytes.Equal(there[i].Bytes(), want) {
						t.Fatalf("round %d, buffer %d: wrong bytes", round, i)
					}
				}
			}
		})
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
