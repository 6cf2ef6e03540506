package obs

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRecorderKeepsTheLastEventsInOrder(t *testing.T) {
	for _, c := range []struct {
		size, record int
		want         []string
	}{
		{3, 0, nil},
		{3, 2, []string{"0", "1"}},
		{3, 3, []string{"0", "1", "2"}},
		{3, 4, []string{"1", "2", "3"}},
		{3, 9, []string{"6", "7", "8"}},
		{1, 2, []string{"1"}},
		{0, 2, []string{"1"}},
	} {
		r := NewRecorder(c.size)
		for i := range c.record {
			r.Record(Decision, fmt.Sprint(i), nil)
		}
		var got []string
		for _, e := range r.Events() {
			got = append(got, e.Subject)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("size %d after %d events: %s", c.size, c.record, diff)
		}
		if r.Total() != uint64(c.record) {
			t.Errorf("total %d, want %d", r.Total(), c.record)
		}
	}
}

func TestEventsCarryTimeKindAndSubject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder(2)
		start := time.Now()
		r.Record(Route, "127.0.0.1:15001", "opened")
		<-time.After(time.Minute)
		r.Record(Failure, "task 3", nil)
		want := []Event{
			{start, Route, "127.0.0.1:15001", "opened", 1, start},
			{start.Add(time.Minute), Failure, "task 3", nil, 1, start.Add(time.Minute)},
		}
		if diff := cmp.Diff(want, r.Events()); diff != "" {
			t.Error(diff)
		}
	})
}

type countingText struct{ calls int }

func (c *countingText) String() string { c.calls++; return "chosen" }

func TestTextIsFormattedOnlyWhenRead(t *testing.T) {
	r := NewRecorder(4)
	var detail countingText
	r.Record(Decision, "s", &detail)
	events := r.Events()
	if detail.calls != 0 {
		t.Fatalf("formatted %d times before anybody read", detail.calls)
	}
	if events[0].Text() != "chosen" || detail.calls != 1 {
		t.Errorf("text %q after %d calls", events[0].Text(), detail.calls)
	}
	for detail, want := range map[any]string{"plain": "plain", errors.New("broken"): "broken", 7: "7"} {
		if got := (Event{Detail: detail}).Text(); got != want {
			t.Errorf("text of %v is %q", detail, got)
		}
	}
}

func TestEventsAreACopy(t *testing.T) {
	r := NewRecorder(2)
	for i := range 3 { // both forms of the ring: filling and wrapped
		r.Record(Decision, "kept", i)
		r.Events()[0].Subject = "changed"
		for _, e := range r.Events() {
			if e.Subject != "kept" {
				t.Fatal("a reader changed the ring")
			}
		}
	}
}

func TestRecorderIsSafeForConcurrentUse(t *testing.T) {
	r := NewRecorder(8)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				r.Record(Failure, "s", "d")
				r.Events()
			}
		})
	}
	wg.Wait()
	if r.Total() != 400 || len(r.Events()) != 8 {
		t.Errorf("total %d, kept %d", r.Total(), len(r.Events()))
	}
}

// A flood of failures must not push out the decision that led to it.
func TestRepetitionsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder(3)
		start := time.Now()
		r.Record(Decision, "a", "tcp")
		for i := range 1000 {
			<-time.After(time.Second)
			r.RecordLike(Failure, "a", "refused", i)
		}
		<-time.After(time.Second)
		r.RecordLike(Failure, "b", "refused", "other subject")
		want := []Event{
			{start, Decision, "a", "tcp", 1, start},
			{start.Add(time.Second), Failure, "a", 0, 1000, start.Add(1000 * time.Second)},
			{start.Add(1001 * time.Second), Failure, "b", "other subject", 1, start.Add(1001 * time.Second)},
		}
		if diff := cmp.Diff(want, r.Events()); diff != "" {
			t.Error(diff)
		}
		for _, other := range []struct{ kind, subject, group string }{{Failure, "b", "closed"}, {Route, "b", "closed"}, {Route, "b", ""}, {Route, "b", ""}} {
			before := r.Total()
			r.RecordLike(other.kind, other.subject, other.group, nil)
			if r.Total() != before+1 {
				t.Errorf("%v was counted at another event", other)
			}
		}
	})
}
