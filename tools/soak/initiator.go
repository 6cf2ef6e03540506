package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/moonpath-io/moonpath"
)

// initiator is an engine of this process that several workers share. Who uses it holds mu for reading; who replaces the
// engine or closes a segment holds it for writing.
type initiator struct {
	mu     sync.RWMutex
	engine *moonpath.Engine
	epoch  int // grows with each engine

	impatient bool // its requests end while a peer is frozen; those of others outlast that
	open      sync.Mutex
	names     map[*peer]string
	ids       map[*peer]moonpath.SegmentID
	tasks     *tally // of all workers, over the life of the engine
}

func newInitiator(ctx context.Context, impatient bool) (*initiator, error) {
	i := &initiator{impatient: impatient}
	return i, i.begin(ctx)
}

func (i *initiator) begin(ctx context.Context) (err error) {
	o := moonpath.Options{Host: "127.0.0.1", Environ: []string{}, Transports: []string{"tcp"}}
	if i.impatient {
		o.Settings = map[string]string{"tcp.status_timeout": "1s", "tcp.progress_timeout": "1s"}
	}
	i.engine, err = moonpath.Open(ctx, o)
	i.epoch++
	i.names, i.ids, i.tasks = map[*peer]string{}, map[*peer]moonpath.SegmentID{}, &tally{}
	return err
}

// segment opens the peer's segment where it is not open; mu is held for reading.
func (i *initiator) segment(ctx context.Context, p *peer, name string) (moonpath.SegmentID, error) {
	i.open.Lock()
	defer i.open.Unlock()
	if i.names[p] == name {
		return i.ids[p], nil
	}
	id, err := i.engine.OpenSegmentContext(ctx, name)
	if err == nil {
		i.names[p], i.ids[p] = name, id
	}
	return id, err
}

// forget closes the peer's segment. Nothing is under way, since mu is held for writing.
func (i *initiator) forget(p *peer) error {
	id, opened := i.ids[p]
	if !opened {
		return nil
	}
	delete(i.ids, p)
	delete(i.names, p)
	return i.engine.CloseSegment(id)
}

// end closes the engine and compares its counters with what its users have counted.
func (i *initiator) end() (disagree []string, err error) {
	c := i.tasks.counts()
	if submitted := i.tasks.submitted.Load(); submitted != c.ended() {
		disagree = append(disagree, fmt.Sprintf("%d tasks were submitted, and %d have ended: %+v", submitted, c.ended(), c))
	}
	counter := func(name string) int64 {
		for _, s := range i.engine.Counters() {
			if s.Path == "multi" && s.Name == name {
				return s.Value
			}
		}
		return -1
	}
	if n := counter("tasks"); n != i.tasks.submitted.Load() {
		disagree = append(disagree, fmt.Sprintf("the engine counts %d tasks, and %d were submitted", n, i.tasks.submitted.Load()))
	}
	if n := counter("tasks_failed"); n != c.Failed+c.Canceled+c.Timeout {
		disagree = append(disagree, fmt.Sprintf("the engine counts %d tasks that did not complete, and %d were seen: %+v", n, c.Failed+c.Canceled+c.Timeout, c))
	}
	return disagree, i.engine.Close()
}
