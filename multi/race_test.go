package multi

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moonpath-io/moonpath/selector"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/xfer"
)

// These tests set up by hand what happens between two goroutines within nanoseconds.

// The wake-up of tasks that have ended may come after newer ones began.
func TestLateWakeUpEndsNoWait(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
	to := r.open("peer", []string{"path"})
	b := r.batch(1)
	r.submit(b, writes(to, r.memory(16), 1, 16)...)
	r.held(path, 1)
	done := b.Done()
	late := func() {
		b.wake()
		b.doneMu.Lock()
		defer b.doneMu.Unlock()
		b.closeDone()
	}
	late()
	soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	wants(t, "Wait", b.Wait(soon), xfer.Interrupted)
	if closedNow(done) {
		t.Error("the channel is closed with a task unfinished")
	}
	late()
	path.Step(1)
	if err := b.Wait(t.Context()); err != nil || !closedNow(done) {
		t.Errorf("Wait: %v", err)
	}
}

// Reset may come between the count of the last task and what end does then.
func TestResetClosesTheChannelOfWaiters(t *testing.T) {
	r := newRig(t)
	b := r.batch(1)
	b.left.Store(1)
	done := b.Done()
	b.left.Store(0)
	if err := b.Reset(); err != nil {
		t.Fatal(err)
	}
	if !closedNow(done) {
		t.Error("whoever asked before Reset waits for ever")
	}
}

// idleRoute is a route with room for two pieces that nobody takes from.
func idleRoute(t *testing.T) (*rig, *route, *Batch, xfer.SegmentID) {
	r := newRig(t, narrow(2))
	path := r.install(fake.Options{Name: "path", Dial: waitForEnd})
	to := r.open("peer", []string{"path"})
	b := r.batch(8)
	r.submit(b, writes(to, r.memory(64), 2, 16)...)
	return r, r.peers[to].routes[path], b, to
}

func takeOne(t *testing.T, r *route) {
	t.Helper()
	var c [1]transport.Chunk
	if n := r.Take(transport.Want{Bytes: 1 << 20, Piece: 1 << 20, Queues: transport.Set(transport.Small)}, c[:]); n != 1 {
		t.Fatalf("%d taken", n)
	}
	r.Done([]transport.Completion{{Ref: c[0].Ref}})
}

// Room may be made between a push that fails and the wait for room.
func TestRoomMadeMeanwhileIsSeen(t *testing.T) {
	_, route, _, _ := idleRoute(t)
	p := &piece{task: &task{}, len: 1}
	if route.push(p, 1) {
		t.Fatal("there was room")
	}
	takeOne(t, route)
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := route.awaitRoom(soon, nil, 1); err != nil {
		t.Errorf("awaitRoom: %v", err)
	}
	if err := route.awaitRoom(soon, nil, 1); err != nil {
		t.Errorf("awaitRoom once more: %v", err)
	}
}

// A submission may hold a view that was made before a transport was uninstalled.
func TestOldViewsDoNotBringBackATransport(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path"})
	to := r.open("peer", []string{"path"})
	p, err := r.peer(to)
	if err != nil {
		t.Fatal(err)
	}
	old := p.current()
	if _, err := r.Uninstall(t.Context(), "path"); err != nil {
		t.Fatal(err)
	}
	pl := p.plan(old, selector.Question{Op: xfer.Read})
	wants(t, "the plan", pl.fault, xfer.Closed)
	if p.routes[path] != nil {
		t.Error("there is a route over a transport that is not installed")
	}
}

// A submission may hold what it knows of a peer while the segment is closed, and a view from before a pin.
func TestOldViewsOfAPeerThatIsGone(t *testing.T) {
	r := newRig(t)
	r.install(fake.Options{Name: "path"})
	to := r.open("peer", []string{"path"})
	p, err := r.peer(to)
	if err != nil {
		t.Fatal(err)
	}
	old := p.current()
	pl := p.plan(old, selector.Question{Op: xfer.Read, Pin: r.Pin("warp")})
	wants(t, "a pin that is younger than the view", pl.fault, xfer.NotSupportedTransport)
	same(t, "the pin's name", pl.decision.Pin, "warp")
	if _, err := r.cache.Close(to); err != nil {
		t.Fatal(err)
	}
	r.Forget(to)
	r.workers.Wait()
	pl = p.plan(old, selector.Question{Op: xfer.Read})
	if wants(t, "the plan", pl.fault, xfer.Closed); pl.fault.Detail != "the segment was closed" || len(p.routes) != 0 {
		t.Errorf("%v, %d routes", pl.fault, len(p.routes))
	}
}

// Once the last task is counted its memory may be unregistered.
func TestLeasesAreBackBeforeTheBatchIsOver(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
	to := r.open("peer", []string{"path"})
	local := r.memory(16)
	b := r.batch(1)
	r.submit(b, writes(to, local, 1, 16)...)
	r.held(path, 1)
	b.doneMu.Lock() // stops whoever ends the batch, right after the count
	stepped := make(chan struct{})
	go func() {
		defer close(stepped)
		path.Step(1)
	}()
	for b.left.Load() != 0 {
		runtime.Gosched()
	}
	same(t, "leases", local.InUse(), int64(0))
	b.doneMu.Unlock()
	<-stepped
}

// A segment may be forgotten while the switchboard is being closed.
func TestForgetWhileClosingEndsTheRoutes(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
	to := r.open("peer", []string{"path"})
	b := r.batch(1)
	r.submit(b, writes(to, r.memory(16), 1, 16)...)
	r.held(path, 1)
	b.Cancel()
	r.spawnMu.Lock()
	r.closed.Store(true) // as far as Close has come
	r.spawnMu.Unlock()
	r.Forget(to)
	if _, open := path.Routes(); open != 0 {
		t.Errorf("%d routes stay open", open)
	}
	r.closed.Store(false)
}

// The sweeper may be asked to start when the switchboard is closing, and must not outlive it.
func TestSweeperEndsWithTheSwitchboard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
		to := r.open("peer", []string{"path"})
		b, err := r.NewBatch(1, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		r.submit(b, writes(to, r.memory(16), 1, 16)...)
		r.held(path, 1)
		begin := time.Now()
		r.Close(t.Context()) // returns only when the sweeper has ended
		if took := time.Since(begin); took != 0 {
			t.Errorf("Close waited %v for it", took)
		}
		same(t, "state", r.status(b, 0).State, xfer.Canceled)
	})
}

// A segment may be closed and forgotten while a request to it is looked up.
func TestLookUpsDoNotBringBackAPeer(t *testing.T) {
	r := newRig(t)
	to := r.open("peer", []string{"path"})
	r.mu.Lock()
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		_, _ = r.peer(to)
	}()
	for range 1000 {
		runtime.Gosched() // until it waits for the lock
	}
	if _, err := r.cache.Close(to); err != nil {
		t.Error(err)
	}
	r.mu.Unlock() // Forget would have found nothing
	<-looked
	if len(r.peers) != 0 {
		t.Error("a closed segment is remembered until the switchboard is closed")
	}
}

// Who polls ids that are not out yet must not see half a batch.
func TestIdsArePublishedWhole(t *testing.T) {
	r := newRig(t)
	stop, polled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(polled)
		for {
			for id := range xfer.BatchID(8) {
				if b, err := r.Batch(id); err == nil && b.ID()&0xffffffff != id {
					t.Errorf("id %d gives the batch %d", id, b.ID())
				}
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	for range 500 {
		b := r.batch(0)
		if err := b.Free(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	<-polled
}
