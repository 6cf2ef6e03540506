package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

const (
	poisonWorkers = 2
	rounds        = 8 // batches of one worker before its memory is used again
	tasksAtOnce   = 8
	largest       = 256 << 10
	roundBytes    = tasksAtOnce * largest
	areaBytes     = rounds * roundBytes
)

// poisonRun moves random batches between two engines of this process over tcp. The moment that a batch has ended, its
// local memory is overwritten with poison, and looked at again when the memory's turn comes once more: if the poison has
// changed then something wrote after the end, and if the target has poison then something read after it.
type poisonRun struct {
	near, far *moonpath.Engine
	target    moonpath.SegmentID
	pin       moonpath.Pin
	tasks     tally
	batches   atomic.Int64
	want      int64

	mu         sync.Mutex
	violations []string
}

// poisonResult is what a run found.
type poisonResult struct {
	Seed       uint64   `json:"seed"`
	Batches    int64    `json:"batches"`
	Wanted     int64    `json:"wanted"`
	Seconds    float64  `json:"seconds"`
	Tasks      counts   `json:"tasks"`
	Violations []string `json:"violations"`
}

// enough is how many violations are kept: those that follow say nothing new.
const enough = 20

func (p *poisonRun) violate(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.violations) < enough {
		p.violations = append(p.violations, fmt.Sprintf(format, args...))
	}
}

// runPoison runs until the batches are done or ctx ends.
func runPoison(ctx context.Context, seed uint64, batches int64, progress io.Writer) (result poisonResult, err error) {
	p := &poisonRun{want: batches}
	open := func() (e *moonpath.Engine) {
		if err == nil {
			e, err = moonpath.Open(ctx, moonpath.Options{Host: "127.0.0.1", Environ: []string{}, Transports: []string{"tcp"}})
		}
		return e
	}
	p.far, p.near = open(), open()
	defer func() {
		for _, e := range []*moonpath.Engine{p.near, p.far} {
			if e != nil {
				err = errors.Join(err, e.Close())
			}
		}
	}()
	if err != nil {
		return result, err
	}
	if p.target, err = p.near.OpenSegment(p.far.Name()); err != nil {
		return result, err
	}
	if p.pin, err = p.near.Pin("tcp"); err != nil {
		return result, err
	}
	begin := time.Now()
	stop := everySeconds(5, func() { fmt.Fprintf(progress, "%d batches\n", p.batches.Load()) })
	err = p.work(ctx, seed)
	stop()
	return poisonResult{Seed: seed, Batches: min(p.batches.Load(), batches), Wanted: batches, Seconds: time.Since(begin).Seconds(),
		Tasks: p.tasks.counts(), Violations: p.violations}, err
}

// work runs the workers to their end and looks at all memory once more when the near engine is closed: after that
// nothing can be under way.
func (p *poisonRun) work(ctx context.Context, seed uint64) error {
	var workers []*poisonWorker
	defer func() {
		for _, w := range workers {
			w.close()
		}
	}()
	for i := range poisonWorkers {
		w, err := p.newWorker(rand.New(rand.NewPCG(seed, uint64(i))))
		if err != nil {
			return err
		}
		workers = append(workers, w)
	}
	errs := make([]error, len(workers))
	var running sync.WaitGroup
	for i, w := range workers {
		running.Go(func() { errs[i] = w.run(ctx) })
	}
	running.Wait()
	for _, w := range workers {
		for i := range w.used {
			w.inspect(i)
		}
	}
	return errors.Join(errs...)
}

// used is what a round has used and how.
type used struct {
	local  []byte
	remote []byte // of a completed write; holds remotePoison
	scrap  []byte // of a write that was given up; may hold anything but localPoison
}

// poisonWorker owns memory on both sides. Writes that are given up go to scrap, where late bytes disturb nobody.
type poisonWorker struct {
	p                            *poisonRun
	random                       *rand.Rand
	local, remote, scrap, source *moonpath.Memory
	plain                        *moonpath.Batch
	hasty                        []*moonpath.Batch // with deadlines
	used                         [rounds][]used
	round                        int
}

func (p *poisonRun) newWorker(random *rand.Rand) (*poisonWorker, error) {
	w := &poisonWorker{p: p, random: random}
	var errs []error
	alloc := func(e *moonpath.Engine) *moonpath.Memory {
		m, err := e.Alloc(areaBytes, moonpath.AllocOptions{Populate: true})
		errs = append(errs, err)
		return m
	}
	batch := func(deadline time.Duration) *moonpath.Batch {
		b, err := p.near.NewBatch(moonpath.BatchOptions{Capacity: tasksAtOnce, Deadline: deadline})
		errs = append(errs, err)
		return b
	}
	w.local, w.remote, w.scrap, w.source = alloc(p.near), alloc(p.far), alloc(p.far), alloc(p.far)
	w.plain = batch(0)
	for _, deadline := range []time.Duration{time.Microsecond, 50 * time.Microsecond, time.Millisecond} {
		w.hasty = append(w.hasty, batch(deadline))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	fillPattern(w.source.Bytes(), sourceSeed, 0)
	return w, nil
}

const sourceSeed = 1

func (w *poisonWorker) close() {
	for _, b := range append(w.hasty, w.plain) {
		b.Close()
	}
}

func (w *poisonWorker) run(ctx context.Context) error {
	for ctx.Err() == nil && w.p.batches.Add(1) <= w.p.want {
		i := w.round % rounds
		w.inspect(i)
		if err := w.batch(i); err != nil {
			return err
		}
		w.round++
	}
	return nil
}

// inspect looks at what was given back when round i came last.
func (w *poisonWorker) inspect(i int) {
	for _, u := range w.used[i] {
		if at := notFilled(u.local, localPoison); at >= 0 {
			w.p.violate("local memory was written after its task had ended: byte %d of %d is %#x", at, len(u.local), u.local[at])
		}
		if at := notFilled(u.remote, remotePoison); at >= 0 {
			w.p.violate("the target's memory was written after the write had completed: byte %d of %d is %#x", at, len(u.remote), u.remote[at])
		}
		if at := bytes.IndexByte(u.scrap, localPoison); at >= 0 {
			w.p.violate("local memory was read after its task had ended: byte %d of %d at the target", at, len(u.scrap))
		}
	}
	w.used[i] = w.used[i][:0]
}

// task is one request of a batch, with what it needs to be judged.
type task struct {
	request moonpath.Request
	bad     bool // the address is not the target's
	off     uint64
	seed    uint64
}

// batch runs one batch in one of the ways in which a batch can end, poisons, and judges.
func (w *poisonWorker) batch(round int) error {
	b, patient := w.plain, true
	way := w.random.IntN(4)
	if way == 2 {
		b, patient = w.hasty[w.random.IntN(len(w.hasty))], false
	}
	if way == 3 {
		patient = false
	}
	tasks := w.tasks(round, patient)
	requests := make([]moonpath.Request, len(tasks))
	for i, t := range tasks {
		requests[i] = t.request
	}
	if err := b.Reset(); err != nil {
		return err
	}
	if _, err := b.Submit(context.Background(), requests); err != nil {
		return err
	}
	if way == 3 {
		timer := time.NewTimer(time.Duration(w.random.IntN(400)) * time.Microsecond)
		select {
		case <-b.Done():
		case <-timer.C:
		}
		timer.Stop()
		b.Cancel()
	}
	// As soon as each task ends, not when all have: the engine still works on its neighbours then.
	for i := range tasks {
		s, err := waitTask(b, i)
		if err != nil {
			return err
		}
		w.end(round, &tasks[i], s, patient)
	}
	_ = b.Wait(context.Background()) // each task was judged by its own status
	return nil
}

// waitTask returns the status of a task once it is terminal.
func waitTask(b *moonpath.Batch, i int) (moonpath.Status, error) {
	for {
		s, err := b.Status(i)
		if err != nil || s.State.Terminal() {
			return s, err
		}
		select {
		case <-b.Done():
		case <-time.After(20 * time.Microsecond):
		}
	}
}

func (w *poisonWorker) tasks(round int, patient bool) []task {
	tasks := make([]task, 1+w.random.IntN(tasksAtOnce))
	for i := range tasks {
		t := &tasks[i]
		n := randomSize(w.random, largest)
		if !patient {
			n = 1 + w.random.Uint64N(largest) // long ones, so that the end comes in the middle
		}
		t.off = uint64(round*roundBytes+i*largest) + w.random.Uint64N(largest-n+1)
		t.seed = w.random.Uint64() | 2 // never that of the source
		t.request = moonpath.Request{Op: moonpath.OpRead, Pin: w.p.pin, Local: w.local.At(t.off), Len: n, Target: w.p.target, Remote: uint64(w.source.At(t.off))}
		here := w.here(t)
		if w.random.IntN(2) == 0 {
			t.request.Op = moonpath.OpWrite
			t.request.Remote = uint64(w.remote.At(t.off))
			if !patient {
				t.request.Remote = uint64(w.scrap.At(t.off))
			}
			fillPattern(here, t.seed, t.off)
		}
		if w.random.IntN(20) == 0 {
			t.bad = true
			t.request.Remote = 1 << 20 // nobody's memory
		}
	}
	return tasks
}

func (w *poisonWorker) here(t *task) []byte { return w.local.Bytes()[t.off : t.off+t.request.Len] }

// end judges a task by its status and takes its memory back.
func (w *poisonWorker) end(round int, t *task, s moonpath.Status, patient bool) {
	w.p.tasks.add(s)
	here := w.here(t)
	u := used{local: here}
	completed := s.State == xfer.Completed
	switch {
	case t.bad && completed:
		w.p.violate("a %v at an address that is not the target's completed", t.request.Op)
	case t.bad:
	case patient && !completed:
		w.p.violate("a %v of %d bytes without fault ended as %v: %v", t.request.Op, t.request.Len, s.State, s.Err)
	case t.request.Op == moonpath.OpRead && completed:
		if at := patternMismatch(here, sourceSeed, t.off); at >= 0 {
			w.p.violate("a completed read of %d bytes brought %#x at byte %d", len(here), here[at], at)
		}
	case t.request.Op == moonpath.OpWrite && patient:
		u.remote = w.remote.Bytes()[t.off : t.off+t.request.Len]
		if at := patternMismatch(u.remote, t.seed, t.off); at >= 0 {
			w.p.violate("a completed write of %d bytes left %#x at byte %d", len(here), u.remote[at], at)
		}
		fill(u.remote, remotePoison)
	case t.request.Op == moonpath.OpWrite:
		u.scrap = w.scrap.Bytes()[t.off : t.off+t.request.Len]
	}
	fill(here, localPoison)
	w.used[round] = append(w.used[round], u)
}

// randomSize draws from 1 to limit, each power of two as often as the others.
func randomSize(random *rand.Rand, limit uint64) uint64 {
	top := uint64(1) << random.IntN(64)
	for top > limit {
		top = 1 << random.IntN(64)
	}
	return min(limit, top+random.Uint64N(top))
}
