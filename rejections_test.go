package moonpath_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/transport/fault"
	"github.com/moonpath-io/moonpath/xfer"
)

// rejecting is a pair of engines, and kinds of addresses that the target refuses.
type rejecting struct {
	engine, target *moonpath.Engine
	here, there    *moonpath.Memory
	id             moonpath.SegmentID
	pin            moonpath.Pin
	bad            map[string]uint64
	stale          moonpath.Addr // one of them
}

const rejectedBlock = 4096

func newRejecting(t *testing.T, count int) *rejecting {
	t.Helper()
	r := &rejecting{target: openEngine(t, nil), engine: openEngine(t, nil)}
	r.here, r.there = alloc(t, r.engine, uint64(count)*rejectedBlock), alloc(t, r.target, uint64(count)*rejectedBlock)
	private := allocPrivate(t, r.target, rejectedBlock)
	stale, edge := alloc(t, r.target, rejectedBlock), newMapping(t, r.target, rejectedBlock)
	r.pin, r.stale = pinned(t, r.engine, "tcp"), stale.At(0)
	r.openStale(t, r.target.Name())
	r.bad = map[string]uint64{
		"unpublished": unregistered(t, r.target, rejectedBlock),
		"private":     uint64(private.At(0)),
		"leaving":     edge.addr + edge.size - 1, // whose first byte may be written: it is a piece of its own
		"stale":       uint64(stale.At(0)),       // travels among the others
	}
	return r
}

// openStale opens the target's segment with a description that has a buffer which the target has unregistered since.
func (r *rejecting) openStale(t *testing.T, name string) {
	t.Helper()
	_ = r.target.RegisterLocalMemory(r.stale, rejectedBlock, "*", true) // it may be registered
	r.id = openName(t, r.engine, name)
	if err := r.target.UnregisterLocalMemory(r.stale); err != nil {
		t.Fatal(err)
	}
}

// requests is one block per request; every hundredth has a bad address if there is one.
func (r *rejecting) requests(op moonpath.Op, count int, bad uint64) []moonpath.Request {
	rs := rows(op, r.pin, r.here, r.id, r.there, count, rejectedBlock)
	for i := 50; bad != 0 && i < count; i += 100 {
		rs[i].Remote = bad
	}
	return rs
}

// verify wants exactly the requests with bad addresses to have failed, and the others to have moved their bytes. Where it
// is not sure that each answer arrives, a refused write may have been sent before, so that its status says unknown.
func (r *rejecting) verify(t *testing.T, b *moonpath.Batch, rs []moonpath.Request, bad uint64, sure bool) {
	t.Helper()
	wrong := 0
	for i := range rs {
		s, err := b.Status(i)
		if err != nil {
			t.Fatal(err)
		}
		lo, hi := uint64(i)*rejectedBlock, uint64(i+1)*rejectedBlock
		ok := s.State == xfer.Completed && s.Remote == xfer.Confirmed && bytes.Equal(r.here.Bytes()[lo:hi], r.there.Bytes()[lo:hi])
		if rs[i].Remote == bad {
			ok = s.State == xfer.Failed && errors.Is(s.Err, xfer.Refused) && (s.Remote == xfer.Confirmed || !sure)
		}
		if !ok {
			if wrong++; wrong <= 3 {
				t.Errorf("request %d of %d: %+v", i, len(rs), s)
			}
		}
	}
	if wrong > 3 {
		t.Errorf("%d requests in all did not end as they should", wrong)
	}
}

// TestR_TCP_3_BadAddressesAmongTenThousand has one bad address in a hundred: exactly those fail, and between moonpath
// peers no connection ends for it.
func TestR_TCP_3_BadAddressesAmongTenThousand(t *testing.T) {
	const count = 10_000
	r := newRejecting(t, count)
	b := newBatch(t, r.engine, count)
	for kind, bad := range r.bad {
		for _, op := range []moonpath.Op{moonpath.OpWrite, moonpath.OpRead} {
			t.Run(fmt.Sprintf("%s/%v", kind, op), func(t *testing.T) {
				fill(r.here.Bytes(), byte(len(kind)))
				fill(r.there.Bytes(), byte(len(kind)+1))
				rejected := counter(t, r.target, "tcp", "requests_rejected")
				rs := r.requests(op, count, bad)
				submit(t, b, rs...)
				requireFault(t, b.Wait(t.Context()), xfer.Refused)
				r.verify(t, b, rs, bad, true)
				if got := counter(t, r.target, "tcp", "requests_rejected") - rejected; got != count/100 {
					t.Errorf("the target counts %d refusals, want %d", got, count/100)
				}
			})
		}
	}
	for _, name := range []string{"lanes_broken", "chunks_resent"} {
		if n := counter(t, r.engine, "tcp", name); n != 0 {
			t.Errorf("%s: %d", name, n)
		}
	}
	if n := counter(t, r.target, "tcp", "sessions"); n > perServedRoute {
		t.Errorf("%d connections, want at most %d", n, perServedRoute)
	}
}

// TestR_TCP_3_BadAddressesAtAPeerThatCloses has the target behind a front that hides what is moonpath's, so that it ends
// each connection at a refusal, as published engines do, with answers of innocent requests under way. What it has not
// published travels on a connection of its own, and no lane ends for it.
func TestR_TCP_3_BadAddressesAtAPeerThatCloses(t *testing.T) {
	const count = 5000
	for kind, alone := range map[string]bool{"unpublished": true, "private": true, "leaving": true, "stale": false} {
		for _, op := range []moonpath.Op{moonpath.OpWrite, moonpath.OpRead} {
			t.Run(fmt.Sprintf("%s/%v", kind, op), func(t *testing.T) {
				r := newRejecting(t, count)
				front := openFront(t, r.target.Name(), fault.FrontOptions{Classic: true})
				r.openStale(t, front.Name())
				b, bad := newBatch(t, r.engine, count), r.bad[kind]
				fill(r.here.Bytes(), 5)
				fill(r.there.Bytes(), 6)
				rs := r.requests(op, count, bad)
				start := time.Now()
				submit(t, b, rs...)
				requireFault(t, b.Wait(t.Context()), xfer.Refused)
				took := time.Since(start)
				r.verify(t, b, rs, bad, alone)
				broken, lonely := counter(t, r.engine, "tcp", "lanes_broken"), counter(t, r.engine, "tcp/"+r.target.Name()+"/serial", "requests")
				t.Logf("%v; %d lanes broke, %d requests were made alone", took, broken, lonely)
				if took > 5*time.Second {
					t.Errorf("%d requests with %d bad ones took %v", count, count/100, took)
				}
				if alone && (broken != 0 || lonely != count/100) {
					t.Errorf("%d lanes broke and %d requests travelled alone, want none and %d", broken, lonely, count/100)
				}
				if !alone && broken == 0 {
					t.Error("no lane broke, so that nothing was shown")
				}
			})
		}
	}
}

// TestBadAddressesCostLessThanHalfOfTheThroughput takes turns with and without bad addresses. The limit is for a quiet
// machine; a median of ratios of neighbours is hardly moved by what else happens.
func TestBadAddressesCostLessThanHalfOfTheThroughput(t *testing.T) {
	const count, turns = 10_000, 7
	r := newRejecting(t, count)
	b := newBatch(t, r.engine, count)
	took := func(bad uint64) time.Duration {
		rs := r.requests(moonpath.OpWrite, count, bad)
		start := time.Now()
		submit(t, b, rs...)
		if err := b.Wait(t.Context()); (err != nil) != (bad != 0) {
			t.Fatal(err)
		}
		return time.Since(start)
	}
	took(0)
	for kind, bad := range r.bad {
		var ratios []float64
		for range turns {
			clean := took(0)
			ratios = append(ratios, float64(clean)/float64(took(bad)))
		}
		slices.Sort(ratios)
		median := ratios[turns/2]
		t.Logf("%s: one in a hundred bad gives %.2f of the throughput (from %.2f to %.2f)", kind, median, ratios[0], ratios[turns-1])
		if median < 0.5 {
			t.Errorf("%s: one bad address in a hundred leaves %.2f of the throughput, want at least half", kind, median)
		}
	}
}
