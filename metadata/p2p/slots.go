package p2p

import (
	"container/list"
	"context"
	"net"
	"sync"
	"time"

	"github.com/moonpath-io/moonpath/obs"
)

const (
	// maxConnections bounds the connections that are open at a time. Most of them cost a goroutine and
	// nothing else, so that bursts of engines that start together fit.
	maxConnections = 512
	// maxTurns bounds those among them that hold memory for a large request.
	maxTurns = 64
	// grace is how long a connection has its place for certain. It covers a published engine that sends
	// its frame in three writes and waits for an acknowledgement, up to 40 ms, in between.
	grace = 50 * time.Millisecond
)

// slots enforces both bounds. When one is reached, whoever comes next takes the place of the connection
// whose peer has kept the port waiting longest: nothing is lost that the peer could not have had by then.
//
// A connection is quiet while its peer has to send a small request, or to close; before a large request
// it queues for a turn and is then reading. In between, it works.
type slots struct {
	evicted *obs.Counter

	mu      sync.Mutex
	changed sync.Cond
	open    map[*session]struct{}
	turns   int       // taken
	quiet   list.List // of *session, longest first
	reading list.List // of *session that have a turn and no complete request, longest first
	closed  bool
}

// session is one accepted connection. All but conn is guarded by slots.mu.
type session struct {
	conn  net.Conn
	list  *list.List // quiet, reading, or nil
	place *list.Element
	since time.Time // in that list
	turn  bool
}

func newSlots(evicted *obs.Counter) *slots {
	s := &slots{evicted: evicted, open: make(map[*session]struct{})}
	s.changed.L = &s.mu
	return s
}

func (s *slots) len() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.open))
}

// enter waits until c may be served; c is quiet then. It returns false when the node closes.
func (s *slots) enter(c *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed && len(s.open) >= maxConnections {
		s.makeRoom(&s.quiet)
	}
	if s.closed {
		return false
	}
	s.open[c] = struct{}{}
	s.join(&s.quiet, c)
	return true
}

// takeTurn waits until c may read a large request. It returns false when c was cut, or the node closes.
func (s *slots) takeTurn(c *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isOpen(c) {
		return false
	}
	s.quit(c)
	for !s.closed && s.turns >= maxTurns {
		s.makeRoom(&s.reading)
	}
	if s.closed {
		s.cut(c)
		return false
	}
	c.turn = true
	s.turns++
	s.join(&s.reading, c)
	return true
}

// work says that c has read what it wanted and must not be cut. It returns false if that came too late.
func (s *slots) work(c *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quit(c)
	return s.isOpen(c)
}

// rest ends c's turn and makes it quiet. It returns false when there is nothing more to wait for.
func (s *slots) rest(c *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.isOpen(c) {
		return false
	}
	s.endTurn(c)
	s.join(&s.quiet, c)
	s.changed.Broadcast()
	return true
}

// leave closes the connection and frees its slot.
func (s *slots) leave(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut(c)
}

// close cuts the connections that have sent no complete request, lets the others finish until ctx ends,
// and returns how many it had to cut then.
func (s *slots) close(ctx context.Context) (cut int) {
	stop := context.AfterFunc(ctx, s.wake)
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, l := range []*list.List{&s.quiet, &s.reading} {
		for e := l.Front(); e != nil; e = l.Front() {
			s.cut(e.Value.(*session))
		}
	}
	s.changed.Broadcast()
	for len(s.open) > 0 && ctx.Err() == nil {
		s.changed.Wait()
	}
	for c := range s.open {
		s.cut(c)
		cut++
	}
	return cut
}

// The methods below run with s.mu held, except wake.

// makeRoom cuts the first of l, if it has been there for the time of grace, or waits for a change. The
// caller then looks again.
func (s *slots) makeRoom(l *list.List) {
	if first := l.Front(); first != nil {
		c := first.Value.(*session)
		left := grace - time.Since(c.since)
		if left <= 0 {
			s.cut(c)
			s.evicted.Add(1)
			return
		}
		defer time.AfterFunc(left, s.wake).Stop()
	}
	s.changed.Wait()
}

func (s *slots) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

func (s *slots) isOpen(c *session) bool {
	_, open := s.open[c]
	return open
}

func (s *slots) join(l *list.List, c *session) {
	c.list, c.place, c.since = l, l.PushBack(c), time.Now()
	s.changed.Broadcast()
}

func (s *slots) quit(c *session) {
	if c.list != nil {
		c.list.Remove(c.place)
		c.list, c.place = nil, nil
	}
}

func (s *slots) endTurn(c *session) {
	if c.turn {
		c.turn = false
		s.turns--
	}
}

// cut ends c's connection and frees its places; its goroutine notices by itself.
func (s *slots) cut(c *session) {
	s.quit(c)
	s.endTurn(c)
	delete(s.open, c)
	c.conn.Close()
	s.changed.Broadcast()
}
