package p2p

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moonpath-io/moonpath/obs"
)

// fillTurns returns sessions that have taken all turns.
func fillTurns(t *testing.T, s *slots) []*session {
	t.Helper()
	var sessions []*session
	for range maxTurns {
		c := newSession(t)
		if !s.enter(c) || !s.takeTurn(c) {
			t.Fatal("no turn")
		}
		sessions = append(sessions, c)
	}
	return sessions
}

func newSession(t *testing.T) *session {
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close() })
	return &session{conn: b}
}

// inBackground runs f and tells what it returned.
func inBackground(f func() bool) chan bool {
	done := make(chan bool, 1)
	go func() { done <- f() }()
	synctest.Wait()
	return done
}

func mustWait(t *testing.T, done chan bool) {
	t.Helper()
	select {
	case got := <-done:
		t.Fatalf("returned %v at once", got)
	default:
	}
}

func TestTurnIsWaitedForWhileOthersWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(&obs.Counter{})
		busy := fillTurns(t, s)
		for _, c := range busy {
			if !s.work(c) {
				t.Fatal("evicted without need")
			}
		}
		c := newSession(t)
		s.enter(c)
		done := inBackground(func() bool { return s.takeTurn(c) })
		time.Sleep(time.Hour)
		mustWait(t, done)
		if !s.rest(busy[5]) || !<-done {
			t.Error("the turn was not handed on")
		}
		if s.evicted.Load() != 0 {
			t.Error("somebody was evicted")
		}
	})
}

func TestUnfinishedRequestLosesItsTurnAfterTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(&obs.Counter{})
		stalled := fillTurns(t, s)
		start := time.Now()
		for i, c := range []*session{newSession(t), newSession(t)} {
			s.enter(c)
			if !s.takeTurn(c) {
				t.Fatal("no turn")
			}
			if took := time.Since(start); took != grace {
				t.Errorf("turn %d after %v, want %v", i, took, grace)
			}
		}
		if s.work(stalled[0]) || s.rest(stalled[1]) || s.takeTurn(stalled[0]) {
			t.Error("an evicted connection goes on")
		}
		if !s.work(stalled[2]) || s.evicted.Load() != 2 {
			t.Errorf("evicted %d, want the 2 longest", s.evicted.Load())
		}
	})
}

func TestQuietConnectionKeepsItsPlaceForTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(&obs.Counter{})
		var quiet []*session
		for range maxConnections {
			quiet = append(quiet, newSession(t))
			s.enter(quiet[len(quiet)-1])
		}
		start := time.Now()
		if !s.enter(newSession(t)) || time.Since(start) != grace {
			t.Errorf("entered after %v, want %v", time.Since(start), grace)
		}
		if s.takeTurn(quiet[0]) || !s.takeTurn(quiet[1]) {
			t.Error("not the longest waiting one was evicted")
		}
		if s.len() != maxConnections {
			t.Errorf("%d are open, want %d", s.len(), maxConnections)
		}
	})
}

func TestNewcomerWaitsWhileNobodyIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(&obs.Counter{})
		busy := fillTurns(t, s)
		for _, c := range busy {
			s.work(c)
		}
		queued := make(chan bool, maxConnections)
		for range maxConnections - maxTurns {
			c := newSession(t)
			s.enter(c)
			go func() { queued <- s.takeTurn(c) }()
		}
		c := newSession(t)
		done := inBackground(func() bool { return s.enter(c) })
		time.Sleep(time.Hour)
		mustWait(t, done)
		s.leave(busy[0])
		if !<-done || !<-queued {
			t.Error("the slot was not handed on")
		}
		closed := inBackground(func() bool { return s.close(t.Context()) == 0 })
		mustWait(t, closed)
		for _, c := range busy[1:] {
			if s.rest(c) {
				t.Error("a closing node waits for peers")
			}
			s.leave(c)
		}
		if !<-closed {
			t.Error("connections were cut that could end by themselves")
		}
		for range maxConnections - maxTurns - 1 {
			if <-queued {
				t.Error("a turn after close")
			}
		}
		if s.turns != 0 || s.len() != 0 || s.enter(newSession(t)) {
			t.Errorf("%d turns and %d connections are left", s.turns, s.len())
		}
	})
}

func TestCloseCutsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(&obs.Counter{})
		c := newSession(t)
		s.enter(c)
		s.takeTurn(c)
		s.work(c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if cut := s.close(ctx); cut != 1 || time.Since(start) != time.Second {
			t.Errorf("cut %d after %v, want 1 after 1s", cut, time.Since(start))
		}
		s.leave(c)
		if s.turns != 0 {
			t.Errorf("%d turns are left", s.turns)
		}
	})
}
