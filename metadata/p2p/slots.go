package p2p

import (
	"container/list"
	"context"
	"net"
	"sync"

	"github.com/moonpath-io/moonpath/obs"
)

// slots bounds the connections that are served at a time. It knows which of them wait for their peer:
// those can be cut for a newcomer, because nothing is lost that the peer could not have had long since.
type slots struct {
	limit   int
	evicted *obs.Counter

	mu      sync.Mutex
	changed sync.Cond
	active  map[*session]struct{}
	waiting list.List // of *session, longest first
	closed  bool
}

// session is one accepted connection.
type session struct {
	conn    net.Conn
	waiting *list.Element // in slots.waiting, or nil; guarded by slots.mu
}

func newSlots(limit int, evicted *obs.Counter) *slots {
	s := &slots{limit: limit, evicted: evicted, active: make(map[*session]struct{}, limit)}
	s.changed.L = &s.mu
	return s
}

func (s *slots) len() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.active))
}

// enter waits for a slot, which it frees itself if some connection waits for its peer. The newcomer
// counts as waiting. It returns false after close.
func (s *slots) enter(c *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed && len(s.active) >= s.limit {
		if oldest := s.waiting.Front(); oldest != nil {
			s.cut(oldest.Value.(*session))
			s.evicted.Add(1)
			break
		}
		s.changed.Wait()
	}
	if s.closed {
		return false
	}
	s.active[c] = struct{}{}
	c.waiting = s.waiting.PushBack(c)
	return true
}

// work says that c has heard from its peer and must not be cut. It returns false if c was cut before.
func (s *slots) work(c *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.waiting == nil {
		return false
	}
	s.waiting.Remove(c.waiting)
	c.waiting = nil
	return true
}

// wait says that c waits for its peer again. It returns false when there is nothing to wait for, because
// the node closes or c was cut.
func (s *slots) wait(c *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, active := s.active[c]; !active || s.closed {
		return false
	}
	c.waiting = s.waiting.PushBack(c)
	s.changed.Broadcast()
	return true
}

// leave closes the connection and frees its slot.
func (s *slots) leave(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut(c)
	s.changed.Broadcast()
}

// cut ends c's connection and frees its slot; its goroutine notices by itself. s.mu is held.
func (s *slots) cut(c *session) {
	if c.waiting != nil {
		s.waiting.Remove(c.waiting)
		c.waiting = nil
	}
	delete(s.active, c)
	c.conn.Close()
}

// close ends the connections that wait, lets the others finish until ctx ends, and returns how many it
// had to cut then.
func (s *slots) close(ctx context.Context) (cut int) {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.changed.Broadcast()
	for e := s.waiting.Front(); e != nil; e = s.waiting.Front() {
		s.cut(e.Value.(*session))
	}
	for len(s.active) > 0 && ctx.Err() == nil {
		s.changed.Wait()
	}
	for c := range s.active {
		s.cut(c)
		cut++
	}
	return cut
}
