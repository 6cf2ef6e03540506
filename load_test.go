package moonpath_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

// What docs/explanation/threads-and-memory.md says: an initiator has two goroutines for each lane in use and one
// for the connection that takes one request at a time; a target has one for each connection.
const (
	lanes          = 4 // the default of tcp.lanes
	perRoute       = 2*lanes + 1
	perServedRoute = lanes + 1
)

// TestGoroutinesFollowPeersAndLanes keeps requests in flight at peers that never answer, then ten times as many.
func TestGoroutinesFollowPeersAndLanes(t *testing.T) {
	const peers, submitters, requests = 4, 8, 256
	e := openEngine(t, nil)
	memory := alloc(t, e, 1<<20)
	var ids []moonpath.SegmentID
	for range peers {
		ids = append(ids, openName(t, e, newRawPeer(t, nil).name))
	}
	before := settledGoroutines(t)
	above := func() int { return runtime.NumGoroutine() - before }
	load := func(submitters, requests int) {
		var all sync.WaitGroup
		for range submitters {
			all.Go(func() {
				b, err := e.NewBatch(moonpath.BatchOptions{Capacity: requests}) // ends with the engine
				if err != nil {
					t.Error(err)
					return
				}
				rs := make([]moonpath.Request, requests)
				for i := range rs {
					length := uint64(4096)
					if i&4 != 0 {
						length = 256 << 10
					}
					rs[i] = moonpath.Request{Op: moonpath.Op(i & 1), Local: memory.At(0), Len: length, Target: ids[i/8%peers], Remote: rawMemory}
				}
				submit(t, b, rs...)
			})
		}
		all.Wait()
	}
	load(submitters, requests)
	// A lane is connected when there is more to do than the others can take, at the next submission.
	eventually(t, 10*time.Second, "all lanes are in use, and nothing else", func() bool {
		load(1, 8*peers)
		return above() == peers*perRoute
	})
	load(submitters, 10*requests)
	if got := settledGoroutines(t) - before; got != peers*perRoute {
		t.Errorf("%d goroutines for %d requests to %d peers, want %d", got, 10*submitters*requests, peers, peers*perRoute)
	}
}

// settledGoroutines counts goroutines once those that are about to end have.
func settledGoroutines(t testing.TB) int {
	t.Helper()
	n, since := runtime.NumGoroutine(), time.Now()
	eventually(t, 10*time.Second, "the number of goroutines settles", func() bool {
		if now := runtime.NumGoroutine(); now != n {
			n, since = now, time.Now()
		}
		return time.Since(since) > 100*time.Millisecond
	})
	return n
}

// TestGoroutinesStayBoundedUnderLoad looks at both ends while requests are served.
func TestGoroutinesStayBoundedUnderLoad(t *testing.T) {
	const peers, submitters, requests, block = 4, 8, 256, 16 << 10
	e := openEngine(t, nil)
	here := alloc(t, e, requests*block)
	pin := pinned(t, e, "tcp")
	var targets []moonpath.Request // one for each peer
	for range peers {
		target := openEngine(t, nil)
		there := alloc(t, target, block)
		targets = append(targets, moonpath.Request{Op: moonpath.OpWrite, Pin: pin, Local: here.At(0), Len: block, Target: open(t, e, target), Remote: uint64(there.At(0))})
	}
	before := settledGoroutines(t)
	most := 0
	var all sync.WaitGroup
	var mu sync.Mutex
	for range submitters {
		all.Go(func() {
			b := newBatch(t, e, requests)
			rs := make([]moonpath.Request, requests)
			for i := range rs {
				rs[i] = targets[i%peers]
			}
			for range 20 {
				submit(t, b, rs...)
				n := runtime.NumGoroutine() - before
				mu.Lock()
				most = max(most, n)
				mu.Unlock()
				if err := b.Wait(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if limit := submitters + peers*(perRoute+perServedRoute); most > limit {
		t.Errorf("up to %d goroutines more, want at most %d", most, limit)
	}
}

func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// stalledTransfer returns a batch with one request that is sent and never answered.
func stalledTransfer(t testing.TB) (*moonpath.Batch, *moonpath.Engine, moonpath.Request) {
	t.Helper()
	e := openEngine(t, nil)
	memory := alloc(t, e, 4096)
	r := moonpath.Request{Op: moonpath.OpRead, Local: memory.At(0), Len: 4096, Target: openName(t, e, newRawPeer(t, nil).name), Remote: rawMemory}
	b := newBatch(t, e, 1)
	submit(t, b, r)
	return b, e, r
}

// TestWaitingBurnsNoCore compares a second of waiting with a second of doing nothing in the same process.
func TestWaitingBurnsNoCore(t *testing.T) {
	b, _, _ := stalledTransfer(t)
	const length = time.Second
	runtime.GC()
	idle := cpuTime(t)
	<-time.After(length)
	idle = cpuTime(t) - idle

	// What the engine does in between, such as asking a silent peer whether it is alive, falls into one of them.
	least := length
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), length)
		waiting := cpuTime(t)
		requireFault(t, b.Wait(ctx), xfer.Interrupted)
		waiting = cpuTime(t) - waiting
		cancel()
		t.Logf("CPU time in %v: %v waiting, %v idle", length, waiting, idle)
		if least = min(least, waiting); least <= idle+length/50 {
			return
		}
	}
	t.Errorf("waiting %v takes %v of CPU time, doing nothing %v", length, least, idle)
}

func TestCanceledWaitReturnsAtOnce(t *testing.T) {
	b, e, r := stalledTransfer(t)
	for name, wait := range map[string]func(context.Context) error{
		"Batch.Wait":   b.Wait,
		"Engine.Read":  func(ctx context.Context) error { return e.Read(ctx, r.Target, r.Local, r.Remote, r.Len) },
		"Engine.Write": func(ctx context.Context) error { return e.Write(ctx, r.Target, r.Local, r.Remote, r.Len) },
	} {
		t.Run(name, func(t *testing.T) {
			var took []time.Duration
			for range 21 {
				ctx, cancel := context.WithCancel(t.Context())
				var at time.Time
				timer := time.AfterFunc(2*time.Millisecond, func() { at = time.Now(); cancel() })
				err := wait(ctx)
				took = append(took, time.Since(at))
				timer.Stop()
				requireFault(t, err, xfer.Interrupted)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("the error does not say why: %v", err)
				}
			}
			slices.Sort(took)
			if median := took[len(took)/2]; median > 10*time.Millisecond {
				t.Errorf("%v from the cancellation to the return (all: %v)", median, took)
			}
		})
	}
	if s, err := b.Status(0); err != nil || s.State != xfer.Waiting {
		t.Errorf("the task of the batch did not go on: %+v, %v", s, err)
	}
}
