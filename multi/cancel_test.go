package multi

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/xfer"
)

func TestCancelEndsWhatIsQueuedAndWhatIsOut(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Piece: 10, Window: 3, Script: func(c *transport.Chunk) fake.Answer {
		return fake.Answer{Hold: true, Deaf: c.Remote == base+10, Remote: xfer.Unknown}
	}})
	to := r.open("peer", []string{"path"})
	local := r.memory(4096)
	b, other := r.batch(3), r.batch(1)
	// Out are the first three chunks of task 0, one of them deaf; queued are the rest of it and tasks 1 and 2.
	r.submit(b, writes(to, local, 3, 100)...)
	r.held(path, 3)
	r.submit(other, writes(to, local, 1, 10)...)
	path.Step(1)
	b.Cancel()
	same(t, "states", states(b), []xfer.State{xfer.Waiting, xfer.Canceled, xfer.Canceled})
	same(t, "never sent", r.status(b, 1), xfer.Status{State: xfer.Canceled, Err: r.status(b, 1).Err})
	f := r.fault(b, 1)
	if f.Code != xfer.Interrupted || f.Peer != "peer" || f.Path != "path" || !strings.Contains(f.Detail, "canceled by the caller") {
		t.Errorf("fault %+v", f)
	}
	// The neighbour is out now, in the room that was made; the deaf chunk is still out.
	same(t, "held", path.Held(), 2)
	b.Cancel() // again changes nothing
	same(t, "completed", path.StepAll(), 2)
	same(t, "the neighbour", r.status(other, 0).State, xfer.Completed)
	s := r.status(b, 0)
	same(t, "the task that was half done", s, xfer.Status{State: xfer.Canceled, Remote: xfer.Unknown, Bytes: 20, Err: s.Err})
	wants(t, "Wait", b.Wait(t.Context()), xfer.Interrupted)
	same(t, "leases", local.InUse(), int64(0))
}

func TestCancelOfWhatIsDoneChangesNothing(t *testing.T) {
	r := newRig(t)
	r.install(fake.Options{Name: "path"})
	to := r.open("peer", []string{"path"})
	b := r.batch(1)
	b.Cancel()
	r.submit(b, writes(to, r.memory(16), 1, 16)...)
	if err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Cancel()
	same(t, "state", r.status(b, 0).State, xfer.Completed)
}

// All bytes arrived before the cancellation had an effect: then the task is complete.
func TestCancelThatComesTooLate(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Deaf)})
	to := r.open("peer", []string{"path"})
	b := r.batch(1)
	r.submit(b, writes(to, r.memory(16), 1, 16)...)
	r.held(path, 1)
	b.Cancel()
	path.Step(1)
	same(t, "status", r.status(b, 0), xfer.Status{State: xfer.Completed, Bytes: 16})
}

func TestDeadlineEndsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		path := r.install(fake.Options{Name: "path", Window: 1, Script: fake.Always(fake.Answer{Hold: true, Remote: xfer.Unknown})})
		to := r.open("peer", []string{"path"})
		b, err := r.NewBatch(2, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		r.submit(b, writes(to, r.memory(4096), 2, 16)...)
		begin := time.Now()
		err = b.Wait(t.Context())
		if took := time.Since(begin); took < time.Second || took > time.Second+2*sweepEvery {
			t.Errorf("ended after %v", took)
		}
		wants(t, "Wait", err, xfer.Deadline)
		same(t, "states", states(b), repeated(xfer.Timeout, 2))
		same(t, "certainty", []xfer.Certainty{r.status(b, 0).Remote, r.status(b, 1).Remote}, []xfer.Certainty{xfer.Unknown, xfer.Confirmed})
		same(t, "held", path.Held(), 0)
	})
}

// A batch that is used again, with or without Reset, is not measured by the deadline of its first use.
func TestDeadlineCountsFromEachSubmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
		to := r.open("peer", []string{"path"})
		local := r.memory(4096)
		b, err := r.NewBatch(9, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // one after the other
			r.submit(b, writes(to, local, 1, 16)...)
			time.Sleep(900 * time.Millisecond)
			path.StepAll()
		}
		same(t, "states", states(b), repeated(xfer.Completed, 3))
		time.Sleep(time.Minute)
		synctest.Wait()
		r.sweep.mu.Lock()
		defer r.sweep.mu.Unlock()
		if r.sweep.running || len(r.sweep.watched) != 0 {
			t.Errorf("the sweeper runs with %d batches to watch", len(r.sweep.watched))
		}
	})
}

// Of submissions that overlap, each has its own deadline: what is out, and what is queued.
func TestDeadlinesThatOverlap(t *testing.T) {
	for name, o := range map[string]fake.Options{
		"out":    {Name: "path", Script: fake.Always(fake.Hold)},
		"queued": {Name: "path", Dial: waitForEnd},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.install(o)
				to := r.open("peer", []string{"path"})
				local := r.memory(4096)
				b, err := r.NewBatch(3, time.Second)
				if err != nil {
					t.Fatal(err)
				}
				const w, over = xfer.Waiting, xfer.Timeout
				r.submit(b, writes(to, local, 1, 16)...)
				time.Sleep(600 * time.Millisecond)
				r.submit(b, writes(to, local, 1, 16)...)
				time.Sleep(500 * time.Millisecond)
				same(t, "states after 1.1 s", states(b), []xfer.State{over, w})
				time.Sleep(100 * time.Millisecond)
				r.submit(b, writes(to, local, 1, 16)...)
				time.Sleep(600 * time.Millisecond)
				same(t, "states after 1.8 s", states(b), []xfer.State{over, over, w})
				time.Sleep(600 * time.Millisecond)
				same(t, "states after 2.4 s", states(b), repeated(over, 3))
			})
		})
	}
}

func TestDeadlineOfAPathThatIsNeverOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		path := r.install(fake.Options{Name: "path", Dial: waitForEnd})
		to := r.open("peer", []string{"path"})
		b, err := r.NewBatch(1, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		r.submit(b, writes(to, r.memory(16), 1, 16)...)
		wants(t, "Wait", b.Wait(t.Context()), xfer.Deadline)
		s := r.status(b, 0)
		same(t, "status", s, xfer.Status{State: xfer.Timeout, Err: s.Err})
		same(t, "waiting", r.peers[to].routes[path].Waiting(), transport.QueueSet(0))
	})
}

// A transport that gives nothing back is asked again, and Close still waits for it.
func TestDeadlineOfADeafTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Deaf)})
		to := r.open("peer", []string{"path"})
		b, err := r.NewBatch(1, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		r.submit(b, writes(to, r.memory(16), 1, 16)...)
		time.Sleep(10 * time.Second)
		same(t, "state", r.status(b, 0).State, xfer.Waiting)
		if err := b.Reset(); !errors.Is(err, xfer.BatchBusy) {
			t.Errorf("Reset: %v", err)
		}
		b.Cancel() // too late to be the reason
		path.Answer(func(*transport.Chunk) bool { return true }, fake.Fail(xfer.Socket, xfer.Unknown))
		s := r.status(b, 0)
		same(t, "status", s, xfer.Status{State: xfer.Timeout, Remote: xfer.Unknown, Err: s.Err})
	})
}
