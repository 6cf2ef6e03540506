package multi

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/xfer"
)

// narrow gives every route room for n pieces.
func narrow(n int) func(*Config) { return func(c *Config) { c.MaxQueued = n } }

// full returns a rig with room for 4 pieces and a path that holds one chunk, with one request out and 4 queued.
func full(t *testing.T) (r *rig, path *fake.Transport, requests func(n int) []xfer.Request) {
	r = newRig(t, narrow(4))
	path = r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold), Window: 1})
	to := r.open("peer", []string{"path"})
	local := r.memory(1 << 16)
	requests = func(n int) []xfer.Request { return writes(to, local, n, 16) }
	b := r.batch(5)
	r.submit(b, requests(1)...)
	r.held(path, 1)
	if n, err := b.TrySubmit(requests(4)); n != 4 || err != nil {
		t.Fatalf("%d accepted, %v", n, err)
	}
	return r, path, requests
}

func TestTrySubmitStopsAtAFullQueue(t *testing.T) {
	r, path, requests := full(t)
	b := r.batch(10)
	n, err := b.TrySubmit(requests(3))
	if wants(t, "TrySubmit", err, xfer.TooManyRequests); n != 0 || b.Len() != 0 {
		t.Errorf("%d accepted, %d tasks", n, b.Len())
	}
	steps(path, 2) // one is out, two are queued
	n, err = b.TrySubmit(requests(2))
	if n != 2 || err != nil {
		t.Errorf("%d accepted, %v", n, err)
	}
	same(t, "completed", steps(path, 5), 5)
	same(t, "held", path.Held(), 0)

	// Eight do not fit at once; four do, of which one is taken.
	n, err = b.TrySubmit(requests(8))
	if wants(t, "TrySubmit", err, xfer.TooManyRequests); n != 4 || b.Len() != 6 {
		t.Errorf("%d accepted, %d tasks", n, b.Len())
	}
	var leases int64
	for region := range r.regions.All() {
		leases += region.InUse()
	}
	same(t, "leases", leases, int64(4))
	path.StepAll()
	same(t, "states", states(b), repeated(xfer.Completed, 6))
	if err := b.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// A path that works in the caller's goroutine makes room while it is asked for.
func TestTrySubmitToAnInlinePathNeedsNoQueue(t *testing.T) {
	r := newRig(t, narrow(4))
	path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
	to := r.open("peer", []string{"path"})
	b := r.batch(101)
	r.submit(b, writes(to, r.memory(16), 1, 16)...)
	r.held(path, 1) // it is open now
	if n, err := b.TrySubmit(writes(to, r.memory(1600), 100, 16)); n != 100 || err != nil {
		t.Errorf("%d accepted, %v", n, err)
	}
	same(t, "held", path.Held(), 101)
	path.StepAll()
}

// What was queued without a kick, because requests to another peer followed, makes room, too.
func TestTrySubmitToInlinePathsByTurns(t *testing.T) {
	r := newRig(t, narrow(4))
	path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
	one, two := r.open("one", []string{"path"}), r.open("two", []string{"path"})
	local := r.memory(4096)
	b := r.batch(100)
	r.submit(b, writes(one, local, 1, 16)[0], writes(two, local, 1, 16)[0])
	r.held(path, 2)
	var rs []xfer.Request
	for range 10 {
		rs = append(append(rs, writes(one, local, 3, 16)...), writes(two, local, 1, 16)...)
	}
	if n, err := b.TrySubmit(rs); n != 40 || err != nil {
		t.Errorf("%d accepted, %v", n, err)
	}
	path.StepAll()
}

// A large submission starts to move while the rest of it is being planned.
func TestLargeSubmissionStartsEarly(t *testing.T) {
	const n = 10 * maxGathered
	r := newRig(t)
	var queue *route
	most := 0
	path := r.install(fake.Options{Name: "path", Script: func(*transport.Chunk) fake.Answer {
		if queue != nil {
			queue.mu.Lock()
			most = max(most, queue.queued)
			queue.mu.Unlock()
		}
		return fake.Done
	}})
	to := r.open("peer", []string{"path"})
	local := r.memory(n)
	b := r.batch(n + 1)
	r.submit(b, writes(to, local, 1, 1)...)
	if err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	queue = r.peers[to].routes[path]
	r.submit(b, writes(to, local, n, 1)...)
	if err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if most == 0 || most > maxGathered {
		t.Errorf("%d were queued before the first was taken, want at most %d", most, maxGathered)
	}
}

// Between the requests that have no room there may be some that failed by themselves.
func TestTrySubmitTakesBackInOrder(t *testing.T) {
	r, path, requests := full(t)
	steps(path, 2)
	rs := requests(6)
	rs[0].Op, rs[2].Op, rs[4].Op = 9, 9, 9
	b := r.batch(6)
	n, err := b.TrySubmit(rs)
	if wants(t, "TrySubmit", err, xfer.TooManyRequests); n != 1 || b.Len() != 1 {
		t.Errorf("%d accepted, %d tasks; want the first, which needs no room", n, b.Len())
	}
	wants(t, "Wait", b.Wait(t.Context()), xfer.InvalidArgument)
	r.submit(b, requests(1)...)
	path.StepAll()
	same(t, "states", states(b), []xfer.State{xfer.Failed, xfer.Completed})
}

func TestSubmitWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, path, requests := full(t)
		b := r.batch(6)
		var returned atomic.Bool
		var submitter sync.WaitGroup
		submitter.Go(func() {
			r.submit(b, requests(6)...)
			returned.Store(true)
		})
		for range 6 { // of 5 + 6 requests, 6 are done, one is out and 4 are queued when the last has room
			synctest.Wait()
			if returned.Load() {
				t.Fatal("Submit returned before there was room")
			}
			path.Step(1)
		}
		submitter.Wait()
		path.StepAll()
		if err := b.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestSubmitThatRunsOutOfTimeCancelsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, path, requests := full(t)
		path.Step(1)
		ctx, cancel := context.WithCancel(t.Context())
		b := r.batch(8)
		rs := requests(8)
		rs[6].Op = 9 // fails by itself, whether there is room or not
		var submitter sync.WaitGroup
		submitter.Go(func() {
			n, err := b.Submit(ctx, rs)
			if wants(t, "Submit", err, xfer.Interrupted); !errors.Is(err, context.Canceled) || n != 8 {
				t.Errorf("%d accepted, %v", n, err)
			}
		})
		synctest.Wait()
		steps(path, 3) // room for all four of the first burst
		synctest.Wait()
		cancel()
		submitter.Wait()
		// The first burst is queued; the others have ended visibly.
		rest := []xfer.State{xfer.Canceled, xfer.Canceled, xfer.Failed, xfer.Canceled}
		same(t, "states", states(b), append(repeated(xfer.Waiting, 4), rest...))
		wants(t, "a task without room", r.status(b, 5).Err, xfer.Interrupted)
		path.StepAll()
		wants(t, "Wait", b.Wait(t.Context()), xfer.Interrupted)
		same(t, "states", states(b), append(repeated(xfer.Completed, 4), rest...))
		same(t, "report", b.Report().Requests[7].State, "canceled")
	})
}

// More pieces than there is ever room for go in alone.
func TestRequestOfManyPiecesFitsAnEmptyQueue(t *testing.T) {
	r := newRig(t, narrow(2))
	path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold), Window: 1})
	to := r.open("peer", []string{"path"})
	local := r.memory(64)
	rs := writes(to, local, 2, 16)
	b := r.batch(3)
	r.submit(b, rs[0])
	r.held(path, 1)
	// Ten published buffers of one byte each make ten pieces.
	many := r.open("many", []string{"path"}, bytesApart(10)...)
	r.submit(b, xfer.Request{Op: xfer.Write, Local: local.At(0), Len: 10, Target: many, Remote: base})
	r.held(path, 2)
	n, err := b.TrySubmit([]xfer.Request{{Op: xfer.Write, Local: local.At(0), Len: 10, Target: many, Remote: base}})
	if wants(t, "a second one", err, xfer.TooManyRequests); n != 0 {
		t.Errorf("%d accepted", n)
	}
	path.StepAll()
	same(t, "chunks", len(path.Taken()), 11)
	same(t, "states", states(b), repeated(xfer.Completed, 2))
}

// All who wait for room get it, or learn that there will be none: one who is woken wakes the next.
func TestEveryoneWhoWaitsForRoomIsWoken(t *testing.T) {
	for name, end := range map[string]func(*rig, *fake.Transport){
		"by work done": func(r *rig, path *fake.Transport) { path.StepAll() },
		"by Uninstall": func(r *rig, path *fake.Transport) {
			ended, cancel := context.WithCancel(r.t.Context())
			cancel()
			if _, err := r.Uninstall(ended, "path"); err != nil {
				r.t.Error(err)
			}
		},
		"by Close": func(r *rig, path *fake.Transport) { r.Close(r.t.Context()) },
		"by cancelling what fills the queue": func(r *rig, path *fake.Transport) {
			for _, b := range r.batches.all() {
				if b.Len() == 5 {
					b.Cancel()
				}
			}
			synctest.Wait()
			path.StepAll()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, path, requests := full(t)
				var submitters sync.WaitGroup
				for range 5 {
					b := r.batch(3)
					submitters.Go(func() {
						if n, err := b.Submit(t.Context(), requests(3)); n != 3 || err != nil {
							t.Errorf("%d accepted, %v", n, err)
						}
						_ = b.Wait(t.Context())
					})
				}
				synctest.Wait()
				end(r, path)
				for range 20 {
					synctest.Wait()
					path.StepAll()
				}
				submitters.Wait()
			})
		})
	}
}

// Room for several is made at once, and nothing else happens afterwards.
func TestOneWhoFindsRoomWakesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, narrow(4))
		path := r.install(fake.Options{Name: "path", Window: 1, Script: fake.Always(fake.Deaf)})
		to := r.open("peer", []string{"path"})
		local := r.memory(4096)
		filler := r.batch(5)
		r.submit(filler, writes(to, local, 1, 16)...)
		r.held(path, 1)
		r.submit(filler, writes(to, local, 4, 16)...)
		var submitters sync.WaitGroup
		for range 4 {
			b := r.batch(1)
			submitters.Go(func() { r.submit(b, writes(to, local, 1, 16)...) })
		}
		synctest.Wait()
		filler.Cancel() // takes back the four that are queued; the one that is out stays out
		submitters.Wait()
		same(t, "waiters", r.peers[to].routes[path].waiters, 0)
		path.StepAll()
	})
}

func TestTakeObeysItsWant(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Dial: func(ctx context.Context, _ transport.Peer) error {
		<-ctx.Done() // the test is the taker
		return ctx.Err()
	}})
	to := r.open("peer", []string{"path"})
	local := r.memory(1 << 20)
	b := r.batch(8)
	rs := writes(to, local, 4, 100)
	rs = append(rs, xfer.Request{Op: xfer.Write, Local: local.At(0), Len: 100_000, Target: to, Remote: base},
		xfer.Request{Op: xfer.Write, Local: local.At(0), Len: 50, Target: to, Remote: 1 << 40})
	r.submit(b, rs...)
	route := r.peers[to].routes[path]
	every := transport.Set(transport.Small, transport.Bulk, transport.Suspect)
	same(t, "waiting", route.Waiting(), every)
	take := func(room int, w transport.Want) (all []uint64) {
		t.Helper()
		chunks := make([]transport.Chunk, room)
		for _, c := range chunks[:route.Take(w, chunks)] {
			all = append(all, c.Len)
			route.Done([]transport.Completion{{Ref: c.Ref}})
		}
		return all
	}
	const any = math.MaxUint64
	var nothing []uint64
	same(t, "no room", take(0, transport.Want{Bytes: any, Piece: any, Queues: every}), nothing)
	same(t, "no queue", take(9, transport.Want{Bytes: any, Piece: any}), nothing)
	same(t, "two places", take(2, transport.Want{Bytes: any, Piece: any, Queues: every}), []uint64{100, 100})
	same(t, "one whatever its length", take(9, transport.Want{Bytes: 0, Piece: any, Queues: every}), []uint64{100})
	same(t, "as many bytes as wanted", take(9, transport.Want{Bytes: 50_120, Piece: 50_000, Queues: every}), []uint64{100, 50_000})
	same(t, "small ones only, when there are none", take(9, transport.Want{Bytes: any, Piece: any, Queues: transport.Set(transport.Small)}), nothing)
	same(t, "waiting", route.Waiting(), transport.Set(transport.Bulk, transport.Suspect))
	same(t, "suspects only", take(9, transport.Want{Bytes: any, Piece: 30, Queues: transport.Set(transport.Suspect)}), []uint64{30, 20})
	same(t, "the rest", take(9, transport.Want{Bytes: any, Piece: 40_000, Queues: every}), []uint64{40_000, 10_000})
	same(t, "nothing is left", take(9, transport.Want{Bytes: any, Piece: any, Queues: every}), nothing)
	same(t, "waiting", route.Waiting(), transport.QueueSet(0))
	if err := b.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// The slot table bounds what is out; a taker that comes again when something is back gets the rest.
func TestChunksOutAreBounded(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold), Piece: 1, Unrecorded: true})
	to := r.open("peer", []string{"path"})
	b := r.batch(1)
	r.submit(b, writes(to, r.memory(maxOut+10), 1, maxOut+10)...)
	r.held(path, maxOut)
	same(t, "held", path.Held(), maxOut)
	same(t, "completed", path.StepAll(), maxOut+10)
	same(t, "status", r.status(b, 0), xfer.Status{State: xfer.Completed, Bytes: maxOut + 10})
}
