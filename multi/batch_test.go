package multi

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/xfer"
)

// closedNow reports whether a channel is closed.
func closedNow(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestBatchSplitsOverTransportsAndAddsUp(t *testing.T) {
	r := newRig(t)
	left := r.install(fake.Options{Name: "left"})
	right := r.install(fake.Options{Name: "right"})
	toLeft, toRight := r.open("l", []string{"left"}), r.open("r", []string{"right"})
	local := r.memory(6 * 1024)
	rs := writes(toLeft, local, 6, 1024)
	for i := range rs {
		if i%3 == 1 {
			rs[i].Target = toRight
		}
		rs[i].Op = xfer.Op(i % 2)
	}
	b := r.batch(6)
	r.submit(b, rs...)
	if err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "states", states(b), repeated(xfer.Completed, 6))
	same(t, "over left and right", []int{len(left.Taken()), len(right.Taken())}, []int{4, 2})
	for _, c := range left.Taken() {
		i := (c.Remote - base) / 1024
		same(t, "chunk", c, fake.Taken{Peer: "l", Op: rs[i].Op, Queue: c.Queue, Local: rs[i].Local, Remote: rs[i].Remote, Len: 1024})
	}
	report := b.Report()
	same(t, "paths of the report", report.Paths, []PathReport{
		{Path: "left", Requests: 4, Bytes: 4096, Slices: 4, Reason: "the only usable path", Rejected: report.Paths[0].Rejected},
		{Path: "right", Requests: 2, Bytes: 2048, Slices: 2, Reason: "the only usable path", Rejected: report.Paths[1].Rejected},
	})
	for i, q := range report.Requests {
		if q.Index != i || q.Path == q.Rejected[0].Path || len(q.Rejected) != 1 || q.Rejected[0].Reasons[0].Code != "protocol" || q.State != "completed" || q.Slices != 1 {
			t.Errorf("request %d is reported as %+v", i, q)
		}
	}
	same(t, "overall", b.Overall(), xfer.Status{State: xfer.Completed, Bytes: 6144})
}

func TestLargeRequestIsCutAndCountsOnce(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Piece: 4096, Script: fake.Always(fake.Hold)})
	to := r.open("peer", []string{"path"})
	b := r.batch(1)
	r.submit(b, writes(to, r.memory(10_000), 1, 10_000)...)
	r.held(path, 3)
	same(t, "completed by Step", path.Step(2), 2)
	same(t, "state with a chunk out", r.status(b, 0), xfer.Status{State: xfer.Waiting})
	same(t, "overall with a chunk out", b.Overall(), xfer.Status{State: xfer.Waiting})
	same(t, "report with a chunk out", b.Report().Requests[0], RequestReport{Op: "write", Bytes: 10_000, State: "waiting", Remote: "confirmed"})
	path.Step(1)
	same(t, "state", r.status(b, 0), xfer.Status{State: xfer.Completed, Bytes: 10_000})
	same(t, "slices", b.Report().Requests[0].Slices, 3)
}

func TestResetNeedsAnIdleBatch(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
	to := r.open("peer", []string{"path"})
	local := r.memory(4096)
	b := r.batch(2)
	r.submit(b, writes(to, local, 2, 16)...)
	r.held(path, 2)
	path.Step(1)
	err := b.Reset()
	wants(t, "Reset", err, xfer.BatchBusy)
	if !strings.Contains(err.Error(), "1 of 2 tasks are unfinished") {
		t.Errorf("Reset: %v", err)
	}
	wants(t, "Free", b.Free(), xfer.BatchBusy)
	if err := b.Err(); err != nil {
		t.Errorf("Err with nothing failed: %v", err)
	}
	path.Step(1)
	for range 3 {
		if err := b.Reset(); err != nil {
			t.Fatal(err)
		}
		same(t, "tasks and paths after Reset", []int{b.Len(), len(b.routes)}, []int{0, 0})
		_, err = b.Status(0)
		wants(t, "Status after Reset", err, xfer.InvalidArgument)
		r.submit(b, writes(to, local, 2, 32)...)
		r.held(path, 2)
		path.StepAll()
		same(t, "states", states(b), repeated(xfer.Completed, 2))
		same(t, "bytes", b.Overall().Bytes, uint64(64))
	}
}

func TestCapacityIsABound(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path"})
	to := r.open("peer", []string{"path"})
	rs := writes(to, r.memory(4096), 4, 16)
	b := r.batch(3)
	same(t, "capacity", b.Capacity(), 3)
	for _, submit := range []func([]xfer.Request) (int, error){b.TrySubmit, func(rs []xfer.Request) (int, error) { return b.Submit(t.Context(), rs) }} {
		n, err := submit(rs)
		wants(t, "4 requests for 3 places", err, xfer.TooManyRequests)
		same(t, "accepted", n, 0)
	}
	wants(t, "SubmitAll of 4 requests for 3 places", b.SubmitAll(t.Context(), rs), xfer.TooManyRequests)
	r.submit(b, rs[:2]...)
	n, err := b.Submit(t.Context(), rs[:2])
	if wants(t, "2 requests for 1 place", err, xfer.TooManyRequests); n != 0 || b.Len() != 2 {
		t.Errorf("%d accepted, %d tasks", n, b.Len())
	}
	r.submit(b, rs[:1]...)
	r.submit(b) // no requests need no room
	if err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "taken", len(path.Taken()), 3)
	for _, c := range []int{-1, maxCapacity + 1, math.MaxInt} {
		_, err := r.NewBatch(c, 0)
		wants(t, "NewBatch", err, xfer.InvalidArgument)
	}
	empty := r.batch(0)
	_, err = empty.Submit(t.Context(), rs[:1])
	wants(t, "submission to a batch without room", err, xfer.TooManyRequests)
	if err := empty.Wait(t.Context()); err != nil || empty.Overall().State != xfer.Completed {
		t.Errorf("an empty batch: %v, %v", err, empty.Overall())
	}
}

func TestHandlesCarryAGeneration(t *testing.T) {
	r := newRig(t)
	var first []*Batch
	for i := range 3 {
		b := r.batch(1)
		same(t, "id", b.ID(), xfer.BatchID(i+1))
		first = append(first, b)
	}
	for _, b := range first {
		if got, err := r.Batch(b.ID()); got != b || err != nil {
			t.Errorf("Batch(%d): %v, %v", b.ID(), got, err)
		}
	}
	if err := first[1].Free(); err != nil {
		t.Fatal(err)
	}
	again := r.batch(1)
	same(t, "id of the index in use again", again.ID(), xfer.BatchID(1<<32|2))
	for _, id := range []xfer.BatchID{0, 2, 4, 1<<32 | 1, 2<<32 | 2, 1 << 32, math.MaxUint32, math.MaxUint64} {
		b, err := r.Batch(id)
		if wants(t, "a stale or foreign id", err, xfer.InvalidArgument); b != nil {
			t.Errorf("Batch(%#x) gives a batch", uint64(id))
		}
	}
}

func TestFreeAndCloseEndTheBatch(t *testing.T) {
	r := newRig(t)
	r.install(fake.Options{Name: "path"})
	to := r.open("peer", []string{"path"})
	rs := writes(to, r.memory(4096), 1, 16)
	for name, end := range map[string]func(*Batch) error{"Free": (*Batch).Free, "Close": (*Batch).Close} {
		t.Run(name, func(t *testing.T) {
			b := r.batch(2)
			r.submit(b, rs...)
			if err := b.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := end(b); err != nil {
				t.Fatal(err)
			}
			wants(t, "second Free", b.Free(), xfer.InvalidArgument)
			if err := b.Close(); err != nil {
				t.Errorf("second Close: %v", err)
			}
			wants(t, "Reset", b.Reset(), xfer.Closed)
			_, err := b.Submit(t.Context(), rs)
			wants(t, "Submit", err, xfer.Closed)
			_, err = b.TrySubmit(rs)
			wants(t, "TrySubmit", err, xfer.Closed)
			wants(t, "SubmitAll", b.SubmitAll(t.Context(), rs), xfer.Closed)
			_, err = r.Batch(b.ID())
			wants(t, "its id", err, xfer.InvalidArgument)
			if s := r.status(b, 0); s.State != xfer.Completed {
				t.Errorf("the status is lost: %+v", s)
			}
		})
	}
}

func TestCloseOfABatchCancelsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Deaf)})
		to := r.open("peer", []string{"path"})
		b := r.batch(1)
		r.submit(b, writes(to, r.memory(4096), 1, 16)...)
		r.held(path, 1)
		var closed atomic.Bool
		go func() {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			closed.Store(true)
		}()
		synctest.Wait()
		if closed.Load() {
			t.Error("Close returned while a chunk was out")
		}
		path.Step(1)
		synctest.Wait()
		if !closed.Load() {
			t.Error("Close did not return")
		}
	})
}

// Whoever submits may be waiting for room that others take up.
func TestCloseEndsASubmissionThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, path, requests := full(t)
		b := r.batch(3)
		var submitter sync.WaitGroup
		submitter.Go(func() {
			n, err := b.Submit(t.Context(), requests(3))
			if wants(t, "Submit", err, xfer.Closed); n != 3 {
				t.Errorf("%d accepted", n)
			}
		})
		synctest.Wait()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		submitter.Wait()
		same(t, "states", states(b), repeated(xfer.Canceled, 3))
		path.StepAll()
	})
}

func TestUseAfterCloseOfTheSwitchboard(t *testing.T) {
	r := newRig(t)
	r.install(fake.Options{Name: "path"})
	to := r.open("peer", []string{"path"})
	local := r.memory(4096)
	b := r.batch(1)
	r.Close(t.Context())
	r.Close(t.Context())
	_, err := r.NewBatch(1, 0)
	wants(t, "NewBatch", err, xfer.Closed)
	_, err = b.Submit(t.Context(), writes(to, local, 1, 16))
	wants(t, "Submit", err, xfer.Closed)
	wants(t, "Install", r.Install(t.Context(), fake.New(fake.Options{Name: "late"})), xfer.Closed)
	if err := b.Close(); err != nil {
		t.Errorf("Close of a batch: %v", err)
	}
}

func TestZeroLengthCompletesWithoutTraffic(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path"})
	to := r.open("peer", []string{"path"})
	b := r.batch(2)
	r.submit(b, xfer.Request{Op: xfer.Write, Target: to, Local: 1 << 45}, xfer.Request{Target: to})
	if err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "states", states(b), repeated(xfer.Completed, 2))
	if dialled, _ := path.Routes(); dialled != 0 {
		t.Error("a path was dialled for no bytes")
	}
}

func TestWaitEndsWithItsContextAndTasksGoOn(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
	to := r.open("peer", []string{"path"})
	b := r.batch(1)
	r.submit(b, writes(to, r.memory(4096), 1, 16)...)
	r.held(path, 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := b.Wait(ended)
	if wants(t, "Wait", err, xfer.Interrupted); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: %v, want the context's error in it", err)
	}
	same(t, "state", r.status(b, 0).State, xfer.Waiting)
	path.Step(1)
	if err := b.Wait(ended); err != nil {
		t.Errorf("Wait for a batch that is done: %v", err)
	}
}

func TestEveryWaiterIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
		to := r.open("peer", []string{"path"})
		b := r.batch(2)
		r.submit(b, writes(to, r.memory(4096), 2, 16)...)
		r.held(path, 2)
		var woken atomic.Int32
		var waiters sync.WaitGroup
		// Drain is the first in line: it must pass on what it finds.
		waiters.Go(func() {
			if err := r.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			woken.Add(1)
		})
		synctest.Wait()
		for range 5 {
			waiters.Go(func() {
				if err := b.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				woken.Add(1)
			})
		}
		for range 3 {
			done := b.Done()
			waiters.Go(func() {
				<-done
				woken.Add(1)
			})
		}
		path.Step(1)
		synctest.Wait()
		same(t, "woken with a task unfinished", woken.Load(), int32(0))
		path.Step(1)
		waiters.Wait()
		same(t, "woken", woken.Load(), int32(9))
	})
}

func TestDrainEndsWithItsContext(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
	to := r.open("peer", []string{"path"})
	b := r.batch(1)
	if err := r.Drain(t.Context()); err != nil {
		t.Errorf("Drain without work: %v", err)
	}
	r.submit(b, writes(to, r.memory(4096), 1, 16)...)
	r.held(path, 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Drain(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Drain: %v", err)
	}
	path.Step(1)
}

func TestDoneSpeaksOfTheTasksAtHand(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
	to := r.open("peer", []string{"path"})
	rs := writes(to, r.memory(4096), 1, 16)
	b := r.batch(4)
	if !closedNow(b.Done()) {
		t.Error("Done of an empty batch is not closed")
	}
	for range 3 { // without Reset between them
		r.submit(b, rs...)
		r.held(path, 1)
		done := b.Done()
		if done != b.Done() {
			t.Error("two channels for one wait")
		}
		if closedNow(done) {
			t.Error("closed with a task unfinished")
		}
		path.Step(1)
		if !closedNow(done) || !closedNow(b.Done()) {
			t.Error("not closed although all tasks have ended")
		}
	}
}

func TestStatusOutOfRange(t *testing.T) {
	r := newRig(t)
	b := r.batch(4)
	for _, i := range []int{-1, 0, 3, 4, math.MaxInt, math.MinInt} {
		s, err := b.Status(i)
		if wants(t, "Status", err, xfer.InvalidArgument); s.State != xfer.Invalid {
			t.Errorf("Status(%d): %+v", i, s)
		}
	}
}
