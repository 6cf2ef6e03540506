package multi

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/xfer"
)

// waitForEnd is a Dial that hangs until it is broken off.
func waitForEnd(ctx context.Context, _ transport.Peer) error {
	<-ctx.Done()
	return ctx.Err()
}

// bytesApart returns n published buffers of one byte each, adjacent.
func bytesApart(n int) (all []segment.Buffer) {
	for i := range n {
		all = append(all, segment.Buffer{Addr: base + uint64(i), Len: 1})
	}
	return all
}

func TestFailedDialFailsWhatIsQueuedAndIsTriedAnew(t *testing.T) {
	r := newRig(t)
	var dials atomic.Int32
	path := r.install(fake.Options{Name: "path", Dial: func(context.Context, transport.Peer) error {
		if dials.Add(1) < 3 {
			return &xfer.Fault{Code: xfer.Socket, Stage: xfer.StageDial, Peer: "peer", Detail: "connection refused"}
		}
		return nil
	}})
	to := r.open("peer", []string{"path"})
	local := r.memory(4096)
	b := r.batch(5)
	for i := range 4 {
		r.submit(b.again(t), writes(to, local, 5, 16)...)
		err := b.Wait(t.Context())
		if i < 2 {
			wants(t, "Wait", err, xfer.Socket)
			same(t, "states", states(b), repeated(xfer.Failed, 5))
			same(t, "certainty", r.status(b, 4).Remote, xfer.Confirmed)
			same(t, "waiting", r.peers[to].routes[path].Waiting(), transport.QueueSet(0))
		} else if err != nil {
			t.Errorf("attempt %d: %v", i, err)
		}
	}
	same(t, "dials", dials.Load(), int32(3))
	same(t, "leases", local.InUse(), int64(0))
}

// What fails as it does when the description is old has it fetched anew, in the background.
func TestStaleDescriptionsAreRefreshed(t *testing.T) {
	stale := &xfer.Fault{Code: xfer.WrongPeer, Stage: xfer.StageDial, Retry: xfer.Refresh}
	for name, c := range map[string]struct {
		options fake.Options
		refresh bool
	}{
		"a dial":          {fake.Options{Dial: func(context.Context, transport.Peer) error { return stale }}, true},
		"a chunk":         {fake.Options{Script: fake.Always(fake.Answer{Fault: stale})}, true},
		"another failure": {fake.Options{Script: fake.Always(fake.Fail(xfer.Refused, xfer.Confirmed))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				c.options.Name = "path"
				r.install(c.options)
				to := r.open("peer", []string{"path"})
				b := r.batch(5)
				r.submit(b, writes(to, r.memory(128), 5, 16)...)
				_ = b.Wait(t.Context())
				synctest.Wait()
				same(t, "states", states(b), repeated(xfer.Failed, 5))
				want := 1 // to open it
				if c.refresh {
					want++
				}
				same(t, "look-ups", r.dir.asked(), want)
			})
		})
	}
}

func TestOneRoutePerPeerAndTransport(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path"})
	local := r.memory(4096)
	for _, to := range []xfer.SegmentID{r.open("one", []string{"path"}), r.open("two", []string{"path"})} {
		var submitters sync.WaitGroup
		for range 8 {
			submitters.Go(func() {
				b := r.batch(10)
				r.submit(b, writes(to, local, 10, 16)...)
				if err := b.Wait(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		submitters.Wait()
	}
	dialled, open := path.Routes()
	same(t, "routes", []int{dialled, open}, []int{2, 2})
}

// Dials are bounded, and those that wait for their turn can be broken off.
func TestDialsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var dialling, most atomic.Int32
		release := make(chan struct{})
		path := r.install(fake.Options{Name: "path", Dial: func(ctx context.Context, _ transport.Peer) error {
			most.Store(max(most.Load(), dialling.Add(1)))
			defer dialling.Add(-1)
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}})
		local := r.memory(4096)
		var batches []*Batch
		var ids []xfer.SegmentID
		for i := range 3 * maxDials {
			to := r.open(string(rune('a'+i)), []string{"path"})
			b := r.batch(1)
			r.submit(b, writes(to, local, 1, 16)...)
			batches, ids = append(batches, b), append(ids, to)
		}
		synctest.Wait()
		same(t, "dials at once", most.Load(), int32(maxDials))
		last := len(ids) - 1
		if _, err := r.cache.Close(ids[last]); err != nil {
			t.Fatal(err)
		}
		batches[last].Cancel()
		waiting := r.peers[ids[last]].routes[path].dial
		r.Forget(ids[last])
		synctest.Wait()
		if !closedNow(waiting.over) {
			t.Error("the connector of a peer that is gone still waits for its turn")
		}
		close(release)
		for _, b := range batches[:last] {
			if err := b.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		same(t, "dials at once", most.Load(), int32(maxDials))
	})
}

func TestUninstallDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold), Window: 1})
		local := r.memory(4096)
		one, two := r.open("one", []string{"path"}), r.open("two", []string{"path"})
		b := r.batch(6)
		r.submit(b, append(writes(one, local, 3, 16), writes(two, local, 3, 16)...)...)
		r.held(path, 2)
		var uninstalled atomic.Bool
		go func() {
			got, err := r.Uninstall(t.Context(), "path")
			if err != nil || got != path {
				t.Errorf("Uninstall: %v, %v", got, err)
			}
			uninstalled.Store(true)
		}()
		for range 6 {
			synctest.Wait()
			if uninstalled.Load() {
				t.Error("Uninstall did not wait")
			}
			// New requests are planned without it.
			late := r.batch(1)
			r.submit(late, writes(one, local, 1, 16)...)
			wants(t, "a new request", late.Wait(t.Context()), xfer.NotSupportedTransport)
			path.Step(1)
		}
		synctest.Wait()
		if !uninstalled.Load() {
			t.Error("Uninstall did not return")
		}
		same(t, "states", states(b), repeated(xfer.Completed, 6))
		same(t, "attached", len(path.Attached()), 0)
		_, open := path.Routes()
		same(t, "open routes", open, 0)
		_, err := r.Uninstall(t.Context(), "path")
		wants(t, "second Uninstall", err, xfer.NotSupportedTransport)
		if err := r.Install(t.Context(), path); err != nil {
			t.Errorf("Install again: %v", err)
		}
		r.submit(b.again(t), writes(one, local, 1, 16)...)
		r.held(path, 1)
		path.StepAll()
		same(t, "state", r.status(b, 0).State, xfer.Completed)
	})
}

// again resets a batch.
func (b *Batch) again(t *testing.T) *Batch {
	t.Helper()
	if err := b.Reset(); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestUninstallThatRunsOutOfTimeTearsDown(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Window: 1, Script: fake.Always(fake.Answer{Hold: true, Deaf: true, Remote: xfer.Unknown})})
	to := r.open("peer", []string{"path"})
	b := r.batch(2)
	r.submit(b, writes(to, r.memory(4096), 2, 16)...)
	r.held(path, 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Uninstall(ended, "path"); err != nil {
		t.Fatal(err)
	}
	wants(t, "Wait", b.Wait(t.Context()), xfer.Closed)
	same(t, "states", states(b), repeated(xfer.Failed, 2))
	same(t, "certainties", []xfer.Certainty{r.status(b, 0).Remote, r.status(b, 1).Remote}, []xfer.Certainty{xfer.Unknown, xfer.Confirmed})
	if f := r.fault(b, 1); f.Detail != "the transport was uninstalled" || f.Path != "path" {
		t.Errorf("fault of what was queued: %v", f)
	}
}

func TestUninstallDuringADial(t *testing.T) {
	for name, dial := range map[string]func(context.Context, transport.Peer) error{
		"that hangs": waitForEnd,
		"that fails": func(ctx context.Context, _ transport.Peer) error { <-slowly(ctx); return errors.New("no") },
		"that works": func(ctx context.Context, _ transport.Peer) error { <-slowly(ctx); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				path := r.install(fake.Options{Name: "path", Dial: dial})
				to := r.open("peer", []string{"path"})
				b := r.batch(1)
				r.submit(b, writes(to, r.memory(16), 1, 16)...)
				bounded, cancel := context.WithTimeout(t.Context(), minute)
				defer cancel()
				if _, err := r.Uninstall(bounded, "path"); err != nil {
					t.Error(err)
				}
				// Nothing of the switchboard is in the transport any more.
				if err := path.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if !r.status(b, 0).State.Terminal() {
					t.Errorf("the task is %v", r.status(b, 0).State)
				}
				if name == "that hangs" != (bounded.Err() != nil) {
					t.Errorf("Uninstall ended with its context in state %v", bounded.Err())
				}
			})
		})
	}
}

// A transport may be closed once Uninstall has returned, so a dial must be over by then.
func TestUninstallWaitsForADialThatIsNotWanted(t *testing.T) {
	for name, late := range map[string]error{"that fails": context.Canceled, "that works all the same": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				var returned atomic.Bool
				path := r.install(fake.Options{Name: "path", Dial: func(ctx context.Context, to transport.Peer) error {
					defer returned.Store(true)
					_ = waitForEnd(ctx, to)
					time.Sleep(time.Second) // to clean up
					return late
				}})
				to := r.open("peer", []string{"path"})
				b := r.batch(1)
				r.submit(b, writes(to, r.memory(16), 1, 16)...)
				// Uninstall waits for the request, then the request is not wanted any more.
				var uninstalling sync.WaitGroup
				uninstalling.Go(func() {
					if _, err := r.Uninstall(t.Context(), "path"); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
				b.Cancel()
				uninstalling.Wait()
				if !returned.Load() {
					t.Error("the dial goes on")
				}
				if err := path.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A failing task leaves its rest in the queue until somebody takes; that, too, may be the end of the work.
func TestUninstallAfterATaskThatFailsHalfWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold), Piece: 4, Window: 1})
		to := r.open("peer", []string{"path"})
		b := r.batch(1)
		r.submit(b, writes(to, r.memory(16), 1, 16)...)
		r.held(path, 1)
		var uninstalling sync.WaitGroup
		uninstalling.Go(func() {
			if _, err := r.Uninstall(t.Context(), "path"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		path.Answer(func(*transport.Chunk) bool { return true }, fake.Fail(xfer.Refused, xfer.Confirmed))
		uninstalling.Wait()
		wants(t, "Wait", b.Wait(t.Context()), xfer.Refused)
	})
}

func TestForgetEndsRoutesOnceTheyAreIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
		to := r.open("peer", []string{"path"})
		local := r.memory(4096)
		b := r.batch(2)
		r.submit(b, writes(to, local, 1, 16)...)
		r.held(path, 1)
		if _, err := r.cache.Close(to); err != nil {
			t.Fatal(err)
		}
		r.Forget(to)
		r.Forget(to) // nothing is left to forget
		r.submit(b, writes(to, local, 1, 16)...)
		wants(t, "a request to the closed segment", r.status(b, 1).Err, xfer.InvalidArgument)
		synctest.Wait()
		_, open := path.Routes()
		same(t, "open routes with a chunk out", open, 1)
		path.Step(1)
		synctest.Wait()
		_, open = path.Routes()
		same(t, "open routes", open, 0)
		same(t, "state", r.status(b, 0).State, xfer.Completed)
		again := r.open("peer", []string{"path"})
		same(t, "id of the segment when it is opened again", again, xfer.SegmentID(1<<32|1))
		r.submit(b.again(t), writes(again, local, 1, 16)...)
		r.held(path, 1)
		path.StepAll()
	})
}

func TestRestartedPeerGetsANewRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		path := r.install(fake.Options{Name: "path", Window: 1, Script: fake.Always(fake.Hold)})
		life := func(incarnation uint64) *segment.Desc {
			return &segment.Desc{Name: "peer", Protocols: []string{"path"}, Buffers: []segment.Buffer{{Addr: base, Len: 4096}}, Ext: &segment.Extension{Incarnation: incarnation}}
		}
		r.dir.set(life(1))
		p, err := r.cache.Open(t.Context(), "peer")
		if err != nil {
			t.Fatal(err)
		}
		local := r.memory(4096)
		b := r.batch(3)
		r.submit(b, writes(p.ID, local, 2, 16)...)
		r.held(path, 1)
		r.dir.set(life(2))
		if _, err := p.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.submit(b, writes(p.ID, local, 1, 16)...)
		synctest.Wait()
		same(t, "states", states(b), []xfer.State{xfer.Failed, xfer.Failed, xfer.Waiting})
		wants(t, "what was queued for the first life", r.status(b, 1).Err, xfer.WrongPeer)
		path.StepAll()
		same(t, "state", r.status(b, 2).State, xfer.Completed)
		dialled, open := path.Routes()
		same(t, "routes", []int{dialled, open}, []int{2, 1})
	})
}

func TestInstallAttachesWhatIsRegistered(t *testing.T) {
	r := newRig(t)
	one, two := r.memory(16), r.memory(32)
	path := r.install(fake.Options{Name: "path"})
	want := map[*mem.Region]bool{one: true, two: true}
	for _, region := range path.Attached() {
		if !want[region] {
			t.Errorf("region %d is attached twice, or is not registered", region.ID)
		}
		delete(want, region)
	}
	same(t, "regions that are not attached", len(want), 0)
	wants(t, "a second transport of that name", r.Install(t.Context(), fake.New(fake.Options{Name: "path"})), xfer.InvalidArgument)

	refuse := errors.New("too many regions")
	bad := fake.New(fake.Options{Name: "bad", Attach: func(context.Context, []*mem.Region) error { return refuse }})
	if err := r.Install(t.Context(), bad); !errors.Is(err, refuse) {
		t.Errorf("Install: %v", err)
	}
	if got := r.Installed(); len(got) != 1 || got[0] != path {
		t.Errorf("installed are %v", got)
	}
}

// Registering memory with a device may take long; it must not hold up other work.
func TestInstallDoesNotHoldUpTransfers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.install(fake.Options{Name: "path"})
		to := r.open("peer", []string{"path"})
		local := r.memory(16)
		release := make(chan struct{})
		slow := fake.New(fake.Options{Name: "slow", Attach: func(context.Context, []*mem.Region) error { <-release; return nil }})
		var installing sync.WaitGroup
		installing.Go(func() {
			if err := r.Install(t.Context(), slow); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		b := r.batch(1)
		r.submit(b, writes(to, local, 1, 16)...)
		if err := b.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := r.Uninstall(t.Context(), "path"); err != nil {
			t.Error(err)
		}
		close(release)
		installing.Wait()
		if got := r.Installed(); len(got) != 1 || got[0] != slow {
			t.Errorf("installed are %v; what was uninstalled meanwhile must not be back", got)
		}
	})
}

func TestCloseWaitsForARefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.install(fake.Options{Name: "path"})
		to := r.open("peer", []string{"path"})
		var over atomic.Bool
		r.dir.linger = func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Second)
			over.Store(true)
		}
		b := r.batch(1)
		r.submit(b, xfer.Request{Local: r.memory(16).At(0), Len: 16, Target: to, Remote: 1 << 40})
		if err := b.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		r.Close(t.Context())
		if !over.Load() {
			t.Error("a goroutine of the switchboard is left")
		}
	})
}

func TestCloseWithWorkOutLeavesNothing(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Window: 2, Script: fake.Always(fake.Answer{Hold: true, Deaf: true, Remote: xfer.Unknown})})
	hanging := r.install(fake.Options{Name: "hanging", Dial: waitForEnd})
	to, never := r.open("peer", []string{"path"}), r.open("never", []string{"hanging"})
	local := r.memory(4096)
	b, err := r.NewBatch(10, minute)
	if err != nil {
		t.Fatal(err)
	}
	r.submit(b, append(writes(to, local, 5, 16), writes(never, local, 5, 16)...)...)
	r.held(path, 2)
	r.Close(t.Context())
	if err := b.Wait(t.Context()); err == nil {
		t.Error("a batch that was cut off is complete")
	}
	// What was out comes from the transport's Quiesce; everything was wanted no more.
	same(t, "states", states(b), repeated(xfer.Canceled, 10))
	same(t, "certainty", []xfer.Certainty{r.status(b, 0).Remote, r.status(b, 4).Remote}, []xfer.Certainty{xfer.Unknown, xfer.Confirmed})
	for _, f := range []*fake.Transport{path, hanging} {
		if _, open := f.Routes(); open != 0 {
			t.Errorf("%s has %d open routes", f.Name(), open)
		}
	}
	same(t, "leases", local.InUse(), int64(0))
}

const minute = time.Minute

// slowly is closed after a second, or when ctx ends.
func slowly(ctx context.Context) <-chan struct{} {
	late, cancel := context.WithTimeout(ctx, time.Second)
	context.AfterFunc(late, cancel)
	return late.Done()
}
