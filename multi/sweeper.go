package multi

import (
	"sync"
	"time"
)

// sweeper ends batches whose deadline has passed. Its goroutine runs while there are batches to watch.
type sweeper struct {
	start func()

	mu      sync.Mutex
	watched map[*Batch]struct{}
	running bool
	quit    chan struct{}
}

// sweepEvery is how late a deadline may be noticed.
const sweepEvery = 10 * time.Millisecond

func (s *sweeper) watch(b *Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched == nil {
		s.watched = make(map[*Batch]struct{})
		s.quit = make(chan struct{})
	}
	s.watched[b] = struct{}{}
	if !s.running {
		s.running = true
		s.start()
	}
}

func (s *sweeper) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quit != nil {
		close(s.quit)
		s.quit = nil
	}
}

func (m *Multi) runSweeper() {
	s := &m.sweep
	s.mu.Lock()
	quit := s.quit
	s.mu.Unlock()
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-quit:
			return
		case now := <-tick.C:
			if !s.pass(now.UnixNano()) {
				return
			}
		}
	}
}

// pass ends what is overdue and forgets what has ended; it reports whether anything is left to watch.
func (s *sweeper) pass(now int64) bool {
	var overdue []*Batch
	s.mu.Lock()
	for b := range s.watched {
		at := b.expires.Load()
		switch {
		case at == 0 || b.left.Load() == 0:
			delete(s.watched, b)
		case at <= now:
			overdue = append(overdue, b)
		}
	}
	s.running = len(s.watched) > 0
	more := s.running
	s.mu.Unlock()
	for _, b := range overdue {
		b.cancel(causeDeadline)
	}
	return more
}
