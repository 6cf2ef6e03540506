package fake_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/xfer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestScriptDecidesOfEachChunk(t *testing.T) {
	path, r, q := open(t, fake.Options{Script: func(c *transport.Chunk) fake.Answer {
		switch c.Remote {
		case 0x1010:
			return fake.Fail(xfer.Refused, xfer.Unknown)
		case 0x1020:
			return fake.Hold
		}
		return fake.Done
	}})
	region := memory(t, 64)
	q.add(writes(region, 4)...)
	r.Kick()
	same(t, "answers", q.slots(), []int{0, -int(xfer.Refused), 3})
	if q.done[1].Remote != xfer.Unknown || q.done[1].Fault.Remote != xfer.Unknown {
		t.Error("the certainty of the answer is not in completion and fault")
	}
	same(t, "held", path.Held(), 1)
	same(t, "completed by Step", path.Step(5), 1)
	same(t, "answers", q.slots(), []int{0, -int(xfer.Refused), 3, 2})
	same(t, "record", path.Taken()[1], fake.Taken{Peer: "peer", Op: xfer.Write, Local: region.Addr + 16, Remote: 0x1010, Len: 16})
}

func TestWindowIsNeverExceeded(t *testing.T) {
	path, r, q := open(t, fake.Options{Script: fake.Always(fake.Hold), Window: 3})
	q.add(writes(memory(t, 160), 10)...)
	r.Kick()
	for _, left := range []int{3, 3, 3, 3, 3, 3, 3, 3, 2, 1} {
		same(t, "held", path.Held(), left)
		same(t, "completed by Step", path.Step(1), 1)
	}
	same(t, "answers", q.slots(), []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
}

func TestStepAllIncludesWhatIsTakenMeanwhile(t *testing.T) {
	path, r, q := open(t, fake.Options{Script: fake.Always(fake.Hold), Window: 1})
	q.add(writes(memory(t, 48), 3)...)
	r.Kick()
	same(t, "completed", path.StepAll(), 3)
	same(t, "held", path.Held(), 0)
}

func TestPieceCutsChunks(t *testing.T) {
	path, r, q := open(t, fake.Options{Piece: 10})
	region := memory(t, 32)
	q.add(writes(region, 2)...)
	r.Kick()
	var lens []uint64
	for _, c := range path.Taken() {
		lens = append(lens, c.Len)
	}
	same(t, "lengths", lens, []uint64{10, 6, 10, 6})
}

func TestAnswerPicksHeldChunks(t *testing.T) {
	path, r, q := open(t, fake.Options{Script: fake.Always(fake.Hold)})
	q.add(writes(memory(t, 64), 4)...)
	r.Kick()
	same(t, "picked", path.Answer(func(c *transport.Chunk) bool { return c.Ref.Slot == 2 }, fake.Fail(xfer.Socket, xfer.Confirmed)), 1)
	same(t, "answers", q.slots(), []int{-int(xfer.Socket)})
	same(t, "held", path.Held(), 3)
}

func TestCancelBringsBackAllButDeafChunks(t *testing.T) {
	path, r, q := open(t, fake.Options{Script: func(c *transport.Chunk) fake.Answer {
		if c.Remote == 0x1000 {
			return fake.Deaf
		}
		return fake.Answer{Hold: true, Remote: xfer.Unknown}
	}})
	q.add(writes(memory(t, 48), 3)...)
	r.Kick()
	r.Cancel([]transport.Ref{{Slot: 0}, {Slot: 1}})
	same(t, "answers", q.slots(), []int{-int(xfer.Interrupted)})
	same(t, "certainty", q.done[0].Remote, xfer.Unknown)
	same(t, "completed by Step", path.Step(-1)+path.Step(9), 2)
}

func TestQuiesceGivesBackAllAndTakesNothingMore(t *testing.T) {
	path, r, q := open(t, fake.Options{Script: fake.Always(fake.Deaf), Window: 2})
	q.add(writes(memory(t, 48), 3)...)
	r.Kick()
	if err := path.Close(t.Context()); !errors.Is(err, xfer.BatchBusy) {
		t.Errorf("Close before Quiesce: %v", err)
	}
	same(t, "quietness", r.Quiesce(t.Context()), transport.Quiet)
	same(t, "answers", q.slots(), []int{-int(xfer.Closed), -int(xfer.Closed)})
	r.Kick()
	same(t, "taken", len(path.Taken()), 2)
	same(t, "second quiesce", r.Quiesce(t.Context()), transport.Quiet)
	if dialled, open := path.Routes(); dialled != 1 || open != 0 {
		t.Errorf("%d routes dialled, %d open; want 1 and 0", dialled, open)
	}
	if err := path.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := path.Dial(t.Context(), peer, q); !errors.Is(err, xfer.Closed) {
		t.Errorf("Dial after Close: %v", err)
	}
}

func TestQuiesceEndsWithItsContextWhileAScriptRuns(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	_, r, q := open(t, fake.Options{Script: func(*transport.Chunk) fake.Answer {
		close(entered)
		<-leave
		return fake.Hold
	}})
	q.add(writes(memory(t, 16), 1)...)
	var kick sync.WaitGroup
	kick.Go(r.Kick)
	<-entered
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	same(t, "quietness", r.Quiesce(ended), transport.Unquiet)
	close(leave)
	same(t, "quietness", r.Quiesce(t.Context()), transport.Quiet)
	kick.Wait()
	same(t, "answers", q.slots(), []int{-int(xfer.Closed)})
}

func TestRepeatGivesEverythingBackOnceMore(t *testing.T) {
	path, r, q := open(t, fake.Options{})
	q.add(writes(memory(t, 32), 2)...)
	r.Kick()
	same(t, "repeated", path.Repeat(), 2)
	same(t, "answers", q.slots(), []int{0, 1, 0, 1})
}

func TestConcurrentKicksLoseNothing(t *testing.T) {
	const kicks = 200
	path, r, q := open(t, fake.Options{Window: 5, Script: func(c *transport.Chunk) fake.Answer {
		if c.Len == 1 {
			return fake.Hold
		}
		return fake.Done
	}})
	region := memory(t, 64)
	var all sync.WaitGroup
	for range kicks {
		all.Go(func() {
			cs := writes(region, 2)
			cs[0].Len = 1
			q.add(cs...)
			r.Kick()
			path.Step(1)
		})
	}
	all.Wait()
	path.StepAll()
	same(t, "answers", len(q.slots()), 2*kicks)
}

func TestAwaitHeldReturnsWhenEnoughAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, r, q := open(t, fake.Options{Script: fake.Always(fake.Hold)})
		q.add(writes(memory(t, 48), 3)...)
		var waiter sync.WaitGroup
		waiter.Go(func() {
			if err := path.AwaitHeld(t.Context(), 3); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		r.Kick()
		waiter.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := path.AwaitHeld(ended, 4); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
	})
}

// late is a queue that gets work, and a kick, just after a taker found it empty.
type late struct {
	queue
	route transport.Route
	then  []transport.Chunk
}

func (l *late) Take(w transport.Want, dst []transport.Chunk) int {
	n := l.queue.Take(w, dst)
	if n == 0 && l.then != nil {
		l.add(l.then...)
		l.then = nil
		l.route.Kick()
	}
	return n
}

func TestKickOfATakerThatGoesIdleIsNotLost(t *testing.T) {
	path, work := fake.New(fake.Options{Name: "path"}), &late{then: writes(memory(t, 16), 1)}
	r, err := path.Dial(t.Context(), peer, work)
	if err != nil {
		t.Fatal(err)
	}
	work.route = r
	r.Kick()
	same(t, "answers", work.slots(), []int{0})
}

func TestOffersAndDescribe(t *testing.T) {
	plain := fake.New(fake.Options{Name: "path"})
	if o := plain.Offers(peer.Desc(), nil); len(o) != 1 || len(o[0].Refused) != 0 || o[0].Cost != fake.Cost {
		t.Errorf("towards a peer that offers it: %+v", o)
	}
	if o := plain.Offers(&segment.Desc{}, nil); len(o) != 1 || len(o[0].Refused) != 1 || o[0].Refused[0].Code != "protocol" {
		t.Errorf("towards a peer that does not offer it: %+v", o)
	}
	rows := fake.Rows(fake.Usable(transport.Cost{Setup: 1}), fake.Refused(transport.Reason{Code: "why"}))
	if o := fake.New(fake.Options{Offers: rows}).Offers(&segment.Desc{}, make([]transport.Offer, 1)); len(o) != 3 || o[1].Cost.Setup != 1 || o[2].Refused[0].Code != "why" {
		t.Errorf("configured rows: %+v", o)
	}
	d := segment.Desc{Protocols: []string{"tcp"}, Buffers: []segment.Buffer{{Protocols: []string{"tcp"}}}}
	plain.Describe(&d)
	same(t, "description", d, segment.Desc{Protocols: []string{"tcp", "path"}, Buffers: []segment.Buffer{{Protocols: []string{"tcp", "path"}}}})
}

func TestAttachWatchesItsUser(t *testing.T) {
	ctx := t.Context()
	refuse := errors.New("no")
	var verdict error
	path, r, q := open(t, fake.Options{Script: fake.Always(fake.Hold), Attach: func(context.Context, []*mem.Region) error { return verdict }})
	rs, err := new(mem.Table).Register([]mem.Spec{{Bytes: make([]byte, 64)}, {Bytes: make([]byte, 64)}})
	if err != nil {
		t.Fatal(err)
	}
	verdict = refuse
	if err := path.Attach(ctx, rs); !errors.Is(err, refuse) || len(path.Attached()) != 0 {
		t.Errorf("refused by the options: %v, %d attached", err, len(path.Attached()))
	}
	verdict = nil
	if err := path.Attach(ctx, rs[:1]); err != nil {
		t.Fatal(err)
	}
	if err := path.Attach(ctx, rs); !errors.Is(err, xfer.AddressOverlapped) || len(path.Attached()) != 1 {
		t.Errorf("attached twice: %v, %d attached", err, len(path.Attached()))
	}
	if err := path.Detach(ctx, rs); !errors.Is(err, xfer.AddressNotRegistered) || len(path.Attached()) != 1 {
		t.Errorf("detached without being attached: %v, %d attached", err, len(path.Attached()))
	}
	q.add(writes(rs[0], 1)...)
	r.Kick()
	if err := path.Detach(ctx, rs[:1]); !errors.Is(err, xfer.BatchBusy) {
		t.Errorf("detached under a chunk: %v", err)
	}
	path.Step(1)
	if err := path.Detach(ctx, rs[:1]); err != nil || len(path.Attached()) != 0 {
		t.Errorf("detached: %v, %d attached", err, len(path.Attached()))
	}
}

func TestDialFailsAsTheOptionsSay(t *testing.T) {
	refuse := errors.New("no")
	path := fake.New(fake.Options{Dial: func(context.Context, transport.Peer) error { return refuse }})
	if _, err := path.Dial(t.Context(), peer, new(queue)); !errors.Is(err, refuse) {
		t.Errorf("Dial: %v", err)
	}
}

func TestFactoryOpensTheTransport(t *testing.T) {
	path := fake.New(fake.Options{Name: "path"})
	f := fake.Factory(path)
	got, err := f.Open(t.Context(), transport.Env{})
	if got != path || err != nil || f.Name != "path" || f.Probe().State != transport.Ready {
		t.Errorf("factory %+v opened %v, %v", f, got, err)
	}
}
