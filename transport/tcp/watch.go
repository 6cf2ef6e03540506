package tcp

//moonpath:goroutines

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/moonpath-io/moonpath/internal/sysx"
)

// watcher ends connections on which something is owed and no byte moves. It compares counters, so that the
// data path reads no clock.
type watcher struct {
	quit    chan struct{}
	stopped sync.Once
	running sync.WaitGroup
}

// mark is what was last seen of a connection, and when it changed.
type mark struct {
	progress uint64
	since    time.Time
}

const (
	watchEvery = 250 * time.Millisecond
	// standstill is how long a connection with a half-sent request that was canceled may not move.
	standstill = time.Second
)

func (w *watcher) start(t *Transport) {
	w.quit = make(chan struct{})
	w.running.Go(func() { w.run(t) })
}

func (w *watcher) stop() {
	w.stopped.Do(func() { close(w.quit) })
	w.running.Wait()
}

func (w *watcher) run(t *Transport) {
	tick := time.NewTicker(max(min(t.opt.stall/8, watchEvery), time.Millisecond))
	defer tick.Stop()
	seen := make(map[any]mark)
	for {
		select {
		case <-w.quit:
			return
		case now := <-tick.C:
			sysx.Relax()
			seen = t.look(now, seen)
		}
	}
}

// look ends what has stalled; it returns the marks of all connections on which something is owed.
func (t *Transport) look(now time.Time, seen map[any]mark) map[any]mark {
	marks := make(map[any]mark, len(seen))
	still := func(key any, progress uint64) time.Duration {
		m, known := seen[key]
		if !known || m.progress != progress {
			m = mark{progress, now}
		}
		marks[key] = m
		return now.Sub(m.since)
	}
	for _, r := range t.all() {
		t.lookAt(r, now, still)
	}
	for _, s := range t.accept.all() {
		if s.owed.Load() && still(s, s.progress.Load()) >= t.opt.stall {
			t.log.Warn("session ended: no byte moved", "peer", s.remote(), "for", t.opt.stall)
			s.cut()
		}
	}
	return marks
}

// lookAt ends what stands still on a route; still says for how long something has.
func (t *Transport) lookAt(r *route, now time.Time, still func(key any, progress uint64) time.Duration) {
	again := false
	var stuck []*atomic.Uint64 // counters of connections that have not moved for so long that it is suspicious
	suspect := func(progress *atomic.Uint64, stood time.Duration) {
		if t.opt.silence > 0 && stood >= t.opt.suspicion() {
			stuck = append(stuck, progress)
		}
	}
	for _, l := range r.lanes {
		again = l.failed.Swap(false) || again
		limit := t.opt.stall
		if l.hurry.Load() {
			limit = min(limit, standstill)
		}
		if l.up.Load() && !l.idle() {
			stood := still(l, l.progress.Load())
			suspect(&l.progress, stood)
			if stood >= limit {
				l.stall()
			}
		}
	}
	for _, s := range r.serial {
		if s.owed.Load() {
			suspect(&s.progress, still(s, s.progress.Load()))
		}
	}
	if len(stuck) > 0 {
		r.inquire(now, stuck)
	}
	if again {
		r.Kick() // what waits may have missed the lanes that stood in
	}
}

// stall ends the connection of a lane whose peer does not move.
func (l *lane) stall() {
	l.stalled.Store(true)
	reset(l.connection())
}
