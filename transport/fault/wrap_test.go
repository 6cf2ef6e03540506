package fault_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/transport/fault"
	"github.com/moonpath-io/moonpath/xfer"
)

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

var second = fault.When{Skip: 1, Times: 1}

func TestWithoutRulesNothingGoesWrong(t *testing.T) {
	g := open(t, fake.Options{Piece: 8})
	g.submit(xfer.Write, 8)
	same(t, "codes", codes(g.await(16)), make([]xfer.Code, 16))
	if !bytes.Equal(g.remote[:128], g.local.Bytes()[:128]) {
		t.Error("the bytes are not there")
	}
	if events, _ := g.plan.Events(); len(events) > 0 {
		t.Errorf("events %v", events)
	}
}

func TestDroppedChunkIsNotExecutedAndComesBackWhenItIsCancelled(t *testing.T) {
	g := open(t, fake.Options{}, fault.ChunkRule{Do: fault.Drop, When: second})
	g.submit(xfer.Write, 3)
	same(t, "back", slotsOf(g.await(2)), []uint32{0, 2})
	g.route.Cancel(g.refs())
	back := g.await(3)
	same(t, "codes", codes(back), []xfer.Code{xfer.OK, xfer.OK, xfer.Interrupted})
	same(t, "certainty", back[2].remote, xfer.Confirmed)
	same(t, "executed", g.executed(), [][2]uint64{{0, 16}, {32, 16}})
}

func TestDroppedAnswerIsExecutedAndUnknown(t *testing.T) {
	for op, want := range map[xfer.Op]xfer.Certainty{xfer.Write: xfer.Unknown, xfer.Read: xfer.Confirmed} {
		g := open(t, fake.Options{}, fault.ChunkRule{Do: fault.Drop, Answer: true, When: second})
		g.submit(op, 3)
		same(t, "back", slotsOf(g.await(2)), []uint32{0, 2})
		if !bytes.Equal(g.remote[16:32], g.local.Bytes()[16:32]) {
			t.Errorf("%s: was not executed", op)
		}
		g.route.Quiesce(t.Context())
		back := g.await(3)
		same(t, "codes", codes(back), []xfer.Code{xfer.OK, xfer.OK, xfer.Closed})
		same(t, "certainty", back[2].remote, want)
		same(t, "certainty in the fault", back[2].fault.Remote, want)
	}
}

func TestDelayedChunkIsExecutedLater(t *testing.T) {
	for _, answer := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := open(t, fake.Options{}, fault.ChunkRule{Do: fault.Delay, Delay: time.Minute, Answer: answer, When: second})
			g.submit(xfer.Write, 3)
			time.Sleep(59 * time.Second)
			synctest.Wait()
			same(t, "back", slotsOf(g.await(2)), []uint32{0, 2})
			same(t, "executed", len(g.executed()), map[bool]int{false: 2, true: 3}[answer])
			time.Sleep(2 * time.Second)
			synctest.Wait()
			same(t, "back", slotsOf(g.await(3)), []uint32{0, 2, 1})
			same(t, "executed", len(g.executed()), 3)
		})
	}
}

func TestDelayedChunkThatIsCancelledIsNeverExecuted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, fake.Options{}, fault.ChunkRule{Do: fault.Delay, Delay: time.Minute})
		g.submit(xfer.Write, 1)
		g.route.Cancel(g.refs())
		same(t, "codes", codes(g.await(1)), []xfer.Code{xfer.Interrupted})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		same(t, "executed", len(g.executed()), 0)
	})
}

func TestDuplicateIsExecutedTwiceAndComesBackOnce(t *testing.T) {
	g := open(t, fake.Options{}, fault.ChunkRule{Do: fault.Duplicate, When: second})
	g.submit(xfer.Write, 3)
	same(t, "codes", codes(g.await(3)), make([]xfer.Code, 3))
	same(t, "executed", g.executed(), [][2]uint64{{0, 16}, {16, 16}, {32, 16}, {16, 16}})
}

// What the second execution says is believed, but for one thing: that nothing happened. The first one did happen.
func TestDuplicateThatFailsTheSecondTimeSaysWhatIsThere(t *testing.T) {
	for _, c := range []struct {
		op     xfer.Op
		remote xfer.Certainty
		want   xfer.Code
	}{{xfer.Write, xfer.Unknown, xfer.Refused}, {xfer.Write, xfer.Confirmed, xfer.OK}, {xfer.Read, xfer.Confirmed, xfer.Socket}} {
		runs := 0
		g := open(t, fake.Options{Script: func(*transport.Chunk) fake.Answer {
			if runs++; runs == 2 {
				return fake.Fail(xfer.Refused, c.remote)
			}
			return fake.Done
		}}, fault.ChunkRule{Do: fault.Duplicate})
		g.submit(c.op, 1)
		back := g.await(1)
		same(t, "codes", codes(back), []xfer.Code{c.want})
		same(t, "certainty", back[0].remote, c.remote)
	}
}

func TestReorderedCompletionsComeInReverse(t *testing.T) {
	g := open(t, fake.Options{}, fault.ChunkRule{Do: fault.Reorder, Span: 2})
	g.submit(xfer.Write, 5)
	back := g.await(5)
	same(t, "codes", codes(back), make([]xfer.Code, 5))
	in := slotsOf(back)
	same(t, "order", in, []uint32{4, 3, 2, 1, 0})
	same(t, "order of execution", g.executed()[0], [2]uint64{0, 16})
}

// The transport holds one chunk at a time, so that a span of three is only ever reached by nothing else being out.
func TestReorderDoesNotWaitForWhatCannotCome(t *testing.T) {
	g := open(t, fake.Options{Window: 2, Script: fake.Always(fake.Hold)}, fault.ChunkRule{Do: fault.Reorder, Span: 100})
	g.submit(xfer.Write, 3)
	for range 3 {
		g.path.Step(1)
	}
	same(t, "order", slotsOf(g.await(3)), []uint32{2, 1, 0})
}

func TestCorruptReadDiffersInOneByte(t *testing.T) {
	g := open(t, fake.Options{}, fault.ChunkRule{Do: fault.Corrupt, When: second})
	g.submit(xfer.Read, 3)
	same(t, "codes", codes(g.await(3)), make([]xfer.Code, 3))
	var differ []int
	for i := range 48 {
		if g.local.Bytes()[i] != g.remote[i] {
			differ = append(differ, i)
		}
	}
	if len(differ) != 1 || differ[0] < 16 || differ[0] >= 32 {
		t.Errorf("bytes %v differ, want one from 16 to 31", differ)
	}
	g.submit(xfer.Write, 3)
	g.await(6)
	if events, _ := g.plan.Events(); len(events) != 1 {
		t.Errorf("events %v", events)
	}
}

func TestFailedChunkHasTheFaultThatTheRuleSays(t *testing.T) {
	for _, answer := range []bool{false, true} {
		g := open(t, fake.Options{}, fault.ChunkRule{Do: fault.Fail, Answer: answer, When: second, Remote: xfer.Unknown,
			Fault: &xfer.Fault{Code: xfer.Refused, Stage: xfer.StageSend, Retry: xfer.Refresh}})
		g.submit(xfer.Write, 3)
		for _, c := range g.await(3) {
			if c.slot == 1 && (c.fault == nil || c.fault.Code != xfer.Refused || c.fault.Retry != xfer.Refresh || c.remote != xfer.Unknown || c.fault.Remote != xfer.Unknown) ||
				c.slot != 1 && c.fault != nil {
				t.Errorf("chunk %d: %v, %v", c.slot, c.fault, c.remote)
			}
		}
		same(t, "executed", len(g.executed()), map[bool]int{false: 2, true: 3}[answer])
	}
}

func TestStallHoldsEverythingUntilResume(t *testing.T) {
	g := open(t, fake.Options{Script: func(c *transport.Chunk) fake.Answer {
		if c.Remote == 0 {
			return fake.Hold
		}
		return fake.Done
	}}, fault.ChunkRule{Do: fault.Stall, When: second})
	g.submit(xfer.Write, 4)
	same(t, "answered inside", g.path.StepAll(), 1) // the first one's answer is held, too
	same(t, "executed", len(g.executed()), 1)
	same(t, "out", len(g.refs()), 4)
	g.plan.Resume()
	same(t, "codes", codes(g.await(4)), make([]xfer.Code, 4))
	same(t, "executed", len(g.executed()), 4)

	g.plan.Stall()
	g.submit(xfer.Write, 2)
	same(t, "executed", len(g.executed()), 4)
	g.route.Cancel(g.refs())
	same(t, "codes", codes(g.await(6)[4:]), []xfer.Code{xfer.Interrupted, xfer.Interrupted})
}

// byHand is a transport whose takers are the test.
type byHand struct {
	transport.Transport
	work      transport.Source
	cancelled []transport.Ref
}

func (b *byHand) Dial(_ context.Context, _ transport.Peer, work transport.Source) (transport.Route, error) {
	b.work = work
	return b, nil
}
func (b *byHand) Kick()                                           {}
func (b *byHand) Cancel(refs []transport.Ref)                     { b.cancelled = append(b.cancelled, refs...) }
func (b *byHand) Quiesce(ctx context.Context) transport.Quietness { return transport.Quiet }

func (b *byHand) take(piece uint64) []transport.Chunk {
	dst := make([]transport.Chunk, 8)
	return dst[:b.work.Take(transport.Want{Bytes: piece, Piece: piece, Queues: transport.Set(transport.Small)}, dst)]
}

// A chunk that was held is taken again in smaller parts, and one of them is out when it is cancelled.
func TestHeldChunkIsTakenInPartsAndCancelledInTheMiddle(t *testing.T) {
	for _, finished := range []bool{false, true} {
		b, e := &byHand{Transport: fake.New(fake.Options{Name: "path"})}, newEngine(t)
		plan := newPlan(t, 1)
		r, err := fault.Wrap(b, plan).Dial(t.Context(), target{&segment.Desc{Name: "peer"}}, e)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Quiesce(t.Context())
		e.queued = []transport.Chunk{{Op: xfer.Write, Off: 100, Remote: 1000, Len: 10}}
		plan.Stall()
		if n := len(b.take(1 << 20)); n != 0 {
			t.Fatalf("%d chunks taken during a stall", n)
		}
		plan.Resume()
		part := b.take(4)
		if len(part) != 1 || part[0].Off != 100 || part[0].Remote != 1000 || part[0].Len != 4 {
			t.Fatalf("first part %+v", part)
		}
		if !b.work.Waiting().Has(transport.Small) {
			t.Error("nobody is told that there is more")
		}
		if finished {
			rest := append(b.take(4), b.take(4)...)
			if len(rest) != 2 || rest[1].Off != 108 || rest[1].Remote != 1008 || rest[1].Len != 2 {
				t.Fatalf("rest %+v", rest)
			}
			part = append(part, rest...)
		}
		r.Cancel(e.refs())
		same(t, "cancelled inside", len(b.cancelled), len(part))
		if len(b.take(4)) > 0 {
			t.Error("more of a cancelled chunk is taken")
		}
		for _, c := range part {
			same(t, "back", len(e.back), 0)
			b.work.Done([]transport.Completion{{Ref: c.Ref}})
			b.work.Done([]transport.Completion{{Ref: c.Ref}}) // once too often
		}
		back := e.await(1)
		want, certainty := xfer.Interrupted, xfer.Unknown
		if finished {
			want, certainty = xfer.OK, xfer.Confirmed
		}
		same(t, "codes", codes(back), []xfer.Code{want})
		same(t, "certainty", back[0].remote, certainty)
	}
}

// An answer that comes once more after its slot has another chunk belongs to nobody.
func TestLateAnswerIsNotTakenForAnother(t *testing.T) {
	b, e := &byHand{Transport: fake.New(fake.Options{Name: "path"})}, newEngine(t)
	r, err := fault.Wrap(b, newPlan(t, 1)).Dial(t.Context(), target{&segment.Desc{Name: "peer"}}, e)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Quiesce(t.Context())
	e.queued = []transport.Chunk{{Op: xfer.Write, Len: 8}, {Op: xfer.Write, Len: 8}}
	take := func() transport.Ref {
		dst := make([]transport.Chunk, 1)
		if n := b.work.Take(transport.Want{Bytes: 8, Piece: 8, Queues: transport.Set(transport.Small)}, dst); n != 1 {
			t.Fatalf("%d chunks", n)
		}
		return dst[0].Ref
	}
	old := take()
	b.work.Done([]transport.Completion{{Ref: old}})
	now := take()
	b.work.Done([]transport.Completion{{Ref: old}})
	same(t, "back", slotsOf(e.back), []uint32{0})
	b.work.Done([]transport.Completion{{Ref: now}})
	same(t, "back", slotsOf(e.back), []uint32{0, 1})
}

func TestChanceIsOfEachChunk(t *testing.T) {
	g := open(t, fake.Options{}, fault.ChunkRule{Do: fault.Fail, When: fault.When{Chance: 0.5}})
	g.submit(xfer.Write, 64)
	failed := 0
	for _, c := range codes(g.await(64)) {
		if c != xfer.OK {
			failed++
		}
	}
	if failed < 16 || failed > 48 {
		t.Errorf("%d of 64 chunks failed by a chance of one half", failed)
	}
}

func TestDialsGoWrong(t *testing.T) {
	path := fake.New(fake.Options{Name: "path"})
	plan := newPlan(t, 1,
		fault.DialRule{Do: fault.Fail, When: fault.When{Times: 1}, Fault: &xfer.Fault{Code: xfer.Endpoint, Stage: xfer.StageDial}},
		fault.DialRule{Do: fault.Drop, When: fault.When{Times: 1}},
		fault.DialRule{Do: fault.Delay, Delay: time.Millisecond, When: fault.When{Times: 1}},
	)
	w := fault.Wrap(path, plan)
	to := target{&segment.Desc{Name: "peer"}}
	if _, err := w.Dial(t.Context(), to, newEngine(t)); xfer.CodeOf(err) != xfer.Endpoint {
		t.Errorf("failed dial: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := w.Dial(ctx, to, newEngine(t)); xfer.CodeOf(err) != xfer.Interrupted || ctx.Err() == nil {
		t.Errorf("held dial: %v", err)
	}
	for range 2 {
		r, err := w.Dial(t.Context(), to, newEngine(t))
		if err != nil {
			t.Fatal(err)
		}
		r.Quiesce(t.Context())
	}
	events, _ := plan.Events()
	var text []string
	for _, e := range events {
		text = append(text, e.String())
	}
	same(t, "events", text, []string{"rule 0: fail: dial of peer", "rule 1: drop: dial of peer", "rule 2: delay: dial of peer"})
}

// A transport that took work and then failed its dial does not leave anything with the plan.
func TestWhatIsHeldComesBackWhenTheDialFails(t *testing.T) {
	e := newEngine(t)
	e.queued = []transport.Chunk{{Op: xfer.Write, Len: 8}}
	w := fault.Wrap(eager{fake.New(fake.Options{Name: "path"})}, newPlan(t, 1, fault.ChunkRule{Do: fault.Drop}))
	if _, err := w.Dial(t.Context(), target{&segment.Desc{Name: "peer"}}, e); err == nil {
		t.Fatal("the dial succeeded")
	}
	same(t, "codes", codes(e.await(1)), []xfer.Code{xfer.Closed})
}

type eager struct{ transport.Transport }

func (eager) Dial(_ context.Context, _ transport.Peer, work transport.Source) (transport.Route, error) {
	work.Take(transport.Want{Bytes: 1 << 20, Piece: 1 << 20, Queues: transport.Set(transport.Small)}, make([]transport.Chunk, 4))
	return nil, xfer.Socket
}

func TestSameSeedSameFaults(t *testing.T) {
	run := func(seed uint64) string {
		g := open(t, fake.Options{})
		plan := newPlan(t, seed, fault.ChunkRule{Do: fault.Fail, When: fault.When{Chance: 0.3}}, fault.ChunkRule{Do: fault.Corrupt, When: fault.When{Chance: 0.5}})
		r, err := fault.Wrap(g.path, plan).Dial(t.Context(), target{&segment.Desc{Name: "peer"}}, g.engine)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Quiesce(t.Context())
		for i := range uint64(64) {
			g.chunk(xfer.Read, 16*i, 16)
		}
		r.Kick()
		g.await(64)
		events, _ := plan.Events()
		return fmt.Sprint(events) + string(g.local.Bytes())
	}
	if one, other := run(5), run(5); one != other {
		t.Error("two runs of one seed differ")
	}
	if run(5) == run(6) {
		t.Error("two seeds do the same")
	}
}

func TestRulesThatMakeNoSenseAreRefused(t *testing.T) {
	for want, rule := range map[string]fault.Rule{
		"no action for chunks":     fault.ChunkRule{},
		"no action for chunks: ":   fault.ChunkRule{Do: fault.Reset},
		"how long":                 fault.ChunkRule{Do: fault.Delay},
		"are the caller's":         fault.ChunkRule{Do: fault.Corrupt, Ops: fault.Only(xfer.Write)},
		"form for answers":         fault.ChunkRule{Do: fault.Duplicate, Answer: true},
		"is negative":              fault.ChunkRule{Do: fault.Reorder, Span: -1},
		"is empty":                 fault.ChunkRule{Do: fault.Drop, From: 2, To: 1},
		"chance 1.5":               fault.ChunkRule{Do: fault.Drop, When: fault.When{Chance: 1.5}},
		"skip -1":                  fault.DialRule{Do: fault.Fail, When: fault.When{Skip: -1}},
		"no action for dials":      fault.DialRule{Do: fault.Corrupt},
		"say how long":             fault.DialRule{Do: fault.Delay},
		"no action for streams":    fault.StreamRule{Do: fault.Fail},
		"direction 2":              fault.StreamRule{Do: fault.Drop, Direction: 2},
		"has to say how long":      fault.StreamRule{Do: fault.Delay},
		"0 bytes: use 1 to 65536":  fault.StreamRule{Do: fault.Duplicate},
		"65537 bytes":              fault.StreamRule{Do: fault.Reorder, Bytes: 65537},
		"-1 bytes: use 1 to 65536": fault.StreamRule{Do: fault.Corrupt, Bytes: -1},
	} {
		_, err := fault.NewPlan(1, fault.ChunkRule{Do: fault.Drop}, rule)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "rule 1") {
			t.Errorf("%+v: %v, want %q", rule, err, want)
		}
	}
}

func TestFactoryWrapsWhatItOpens(t *testing.T) {
	f := fault.Factory(fake.Factory(fake.New(fake.Options{Name: "path"})), newPlan(t, 1, fault.DialRule{Do: fault.Fail}))
	opened, err := f.Open(t.Context(), transport.Env{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "name", opened.Name(), "path")
	if _, err := opened.Dial(t.Context(), target{&segment.Desc{}}, newEngine(t)); xfer.CodeOf(err) != xfer.Socket {
		t.Errorf("the dial gave %v", err)
	}
}
