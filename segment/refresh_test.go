package segment_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/xfer"
)

// heldDirectory answers each lookup when the test says so.
type heldDirectory struct{ asked chan *heldLookup }

type heldLookup struct {
	ctx    context.Context
	answer chan *segment.Desc
}

func (d *heldDirectory) Publish(context.Context, func() *segment.Desc) error { return nil }
func (d *heldDirectory) Withdraw(context.Context) error                      { return nil }

func (d *heldDirectory) Lookup(ctx context.Context, name string) (*segment.Desc, error) {
	l := &heldLookup{ctx, make(chan *segment.Desc, 1)}
	d.asked <- l
	select {
	case desc := <-l.answer:
		return desc, nil
	case <-ctx.Done():
		return nil, &xfer.Fault{Code: xfer.Interrupted, Stage: xfer.StageResolve, Peer: name, Cause: ctx.Err()}
	}
}

// openHeld returns an open peer, whose description has port 1, and its directory.
func openHeld(t *testing.T) (*segment.Peer, *heldDirectory) {
	t.Helper()
	d := &heldDirectory{make(chan *heldLookup, 1)}
	go func() { (<-d.asked).answer <- describedBy(1) }()
	p, err := segment.NewCache(d).Open(t.Context(), "h:1")
	if err != nil {
		t.Fatal(err)
	}
	return p, d
}

func describedBy(port uint16) *segment.Desc {
	return &segment.Desc{Protocols: []string{"tcp"}, TCP: segment.Endpoint{Host: "h", Port: port}}
}

type refreshed struct {
	desc *segment.Desc
	err  error
}

func refresh(ctx context.Context, p *segment.Peer) chan refreshed {
	done := make(chan refreshed, 1)
	go func() {
		d, err := p.Refresh(ctx)
		done <- refreshed{d, err}
	}()
	return done
}

// What was asked before the call began may be older than what the caller knows of.
func TestRefreshDoesNotTakeALookupThatBeganBefore(t *testing.T) {
	synctest.Test(t, refreshDoesNotTakeALookupThatBeganBefore)
}

func refreshDoesNotTakeALookupThatBeganBefore(t *testing.T) {
	p, d := openHeld(t)
	first := refresh(t.Context(), p)
	before := <-d.asked
	second := refresh(t.Context(), p)
	third := refresh(t.Context(), p)
	synctest.Wait() // both wait now
	if len(d.asked) > 0 {
		t.Fatal("two lookups at the same time")
	}
	before.answer <- describedBy(2)
	if r := <-first; r.err != nil || r.desc.TCP.Port != 2 {
		t.Errorf("the first got %+v", r)
	}
	(<-d.asked).answer <- describedBy(3)
	for _, c := range []chan refreshed{second, third} {
		if r := <-c; r.err != nil || r.desc.TCP.Port != 3 {
			t.Errorf("a later one got %+v", r)
		}
	}
	if len(d.asked) > 0 {
		t.Error("the two later ones did not share their lookup")
	}
}

func TestRefreshOutlivesTheCallerThatItWaitedFor(t *testing.T) {
	synctest.Test(t, refreshOutlivesTheCallerThatItWaitedFor)
}

func refreshOutlivesTheCallerThatItWaitedFor(t *testing.T) {
	for range 20 { // which of two leads is a matter of chance
		p, d := openHeld(t)
		first := refresh(t.Context(), p)
		lookup := <-d.asked
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp, waits := refresh(ctx, p), refresh(t.Context(), p)
		synctest.Wait()
		lookup.answer <- describedBy(2)
		<-first
		lookup = <-d.asked
		synctest.Wait()
		cancel()
		if r := <-gaveUp; xfer.CodeOf(r.err) != xfer.Interrupted || r.desc.TCP.Port != 2 {
			t.Errorf("the one that gave up got %+v, want the old description and why", r)
		}
		if lookup.ctx.Err() != nil {
			lookup = <-d.asked
		}
		lookup.answer <- describedBy(3)
		if r := <-waits; r.err != nil || r.desc.TCP.Port != 3 {
			t.Errorf("the one that went on got %+v", r)
		}
	}
}

func TestRefreshEndsWithItsOwnContext(t *testing.T) {
	synctest.Test(t, refreshEndsWithItsOwnContext)
}

func refreshEndsWithItsOwnContext(t *testing.T) {
	p, d := openHeld(t)
	for cause, code := range map[error]xfer.Code{context.Canceled: xfer.Interrupted, fmt.Errorf("limit: %w", xfer.Deadline): xfer.Deadline} {
		leads := refresh(t.Context(), p)
		lookup := <-d.asked
		ctx, cancel := context.WithCancelCause(t.Context())
		waits := refresh(ctx, p)
		synctest.Wait()
		cancel(cause)
		if r := <-waits; xfer.CodeOf(r.err) != code {
			t.Errorf("%v: %v, want %v", cause, r.err, code)
		}
		lookup.answer <- describedBy(9)
		if r := <-leads; r.err != nil {
			t.Errorf("the other caller got %v", r.err)
		}
	}
}

// A peer that did not answer is told from one that nobody waited for.
func TestAnsweredTellsSilenceFromImpatience(t *testing.T) {
	dir := newListed()
	p := open(t, segment.NewCache(dir), "a")
	opened, err := p.Answered()
	if err != nil || opened.IsZero() {
		t.Fatalf("after opening: %v, %v", opened, err)
	}
	for _, c := range []struct {
		name  string
		err   error // of the lookup
		want  xfer.Code
		later bool // than the answer before
	}{
		{"no answer", &xfer.Fault{Code: xfer.Socket, Stage: xfer.StageResolve, Detail: "cannot connect"}, xfer.Socket, false},
		{"given up", &xfer.Fault{Code: xfer.Interrupted, Stage: xfer.StageResolve, Detail: "given up"}, xfer.Socket, false},
		{"answered", nil, xfer.OK, true},
		{"out of time", &xfer.Fault{Code: xfer.Deadline, Stage: xfer.StageResolve, Detail: "given up"}, xfer.OK, false},
	} {
		before, _ := p.Answered()
		dir.err = c.err
		_, _ = p.Refresh(t.Context())
		last, err := p.Answered()
		if xfer.CodeOf(err) != c.want || last.After(before) != c.later {
			t.Errorf("%s: %v, later: %v; want %s, %v", c.name, err, last.After(before), c.want.Name(), c.later)
		}
	}
}

// The system may report a timeout an instant before the context says that it has ended.
func TestALookupThatRanOutOfTimeSaysNothingAboutThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := newListed()
		p := open(t, segment.NewCache(dir), "a")
		dir.err = &xfer.Fault{Code: xfer.Socket, Stage: xfer.StageResolve, Detail: "i/o timeout"}
		ended, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		if _, err := p.Refresh(ended); err == nil {
			t.Error("the lookup did not fail")
		}
		if _, err := p.Answered(); err != nil {
			t.Errorf("a lookup without time counts as silence of the peer: %v", err)
		}
		if _, err := p.Refresh(t.Context()); err == nil {
			t.Error("the lookup did not fail")
		}
		if _, err := p.Answered(); err == nil {
			t.Error("a lookup with time does not count")
		}
	})
}
