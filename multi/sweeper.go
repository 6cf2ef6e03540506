package multi

import (
	"sync"
	"time"
)

// sweeper ends tasks whose deadline has passed. Its goroutine runs while there are batches to watch.
type sweeper struct {
	start func()

	mu      sync.Mutex
	watched map[*Batch]struct{}
	running bool
}

// sweepEvery is how late a deadline may be noticed.
const sweepEvery = 10 * time.Millisecond

func (s *sweeper) watch(b *Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched == nil {
		s.watched = make(map[*Batch]struct{})
	}
	s.watched[b] = struct{}{}
	if !s.running {
		s.running = true
		s.start()
	}
}

func (m *Multi) runSweeper() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case now := <-tick.C:
			if !m.sweep.pass(now.UnixNano()) {
				return
			}
		}
	}
}

// pass ends the tasks that are overdue and forgets what has ended; it reports whether anything is left to watch.
func (s *sweeper) pass(now int64) bool {
	var overdue []*Batch
	s.mu.Lock()
	for b := range s.watched {
		at := b.expires.Load()
		switch {
		case b.left.Load() == 0:
			delete(s.watched, b)
		case at <= now:
			overdue = append(overdue, b)
		}
	}
	s.running = len(s.watched) > 0
	more := s.running
	s.mu.Unlock()
	for _, b := range overdue {
		b.cancel(causeDeadline, now)
	}
	return more
}
