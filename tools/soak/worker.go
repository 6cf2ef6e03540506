package main

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

// What a worker has of the memory of each peer: a part whose content is known, and scrap for writes that are given up
// on purpose, which would make the other part uncertain in no time.
const (
	mib         = 1 << 20
	largestTask = 32 * mib
	knownBytes  = 40 * mib
	scrapBytes  = 8 * mib
	shareBytes  = knownBytes + scrapBytes
	localBytes  = 64 * mib
	spareBytes  = mib
	batchSize   = 16
)

const (
	// endLimit is how long a batch may take whatever happens to the peers: R-LIV-1's five seconds for each of a few
	// attempts, on a machine that is busy.
	endLimit = 30 * time.Second
	// recovery is how long a peer may have been back until requests to it must succeed.
	recovery = 8 * time.Second
	// cancelLimit bounds the end of a batch that was canceled.
	cancelLimit = 15 * time.Second
)

// area is what a worker knows of its share of one peer.
type area struct {
	peer       *peer
	from       uint64 // offset of the share in the peer's buffer
	generation int
	known      *model
	carry      []stretch // written while there was no process, so perhaps into the next one
}

type stretch struct{ off, n uint64 }

// follow brings the model up to the peer's generation.
func (a *area) follow(generation int) {
	if a.generation == generation {
		return
	}
	a.generation = generation
	a.known.reset()
	for _, s := range a.carry {
		a.known.set(s.off, s.n, tainted)
	}
	a.carry = nil
}

// worker submits one batch after the other and compares what comes of it with its model.
type worker struct {
	soak   *soak
	on     *initiator
	epoch  int
	random *rand.Rand
	memory *moonpath.Memory
	areas  []*area
	used   [][]byte // local memory of the last batch, which is poison now
	batch  *moonpath.Batch
}

// job is one request of a batch with what it takes to judge it.
type job struct {
	request moonpath.Request
	area    *area
	before  state
	off     uint64 // in the peer's buffer
	here    []byte
	seed    uint64
	scrap   bool
	bad     bool // an address that is not the peer's
}

// way is how a batch is ended.
type way int

const (
	patiently way = iota
	byCancel
	byDeadline
	byContext
)

func (w *worker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// close gives back what the worker has. Nobody else uses the engine any more.
func (w *worker) close() error {
	if w.memory == nil {
		return nil
	}
	w.inspect()
	return errors.Join(w.batch.Close(), w.memory.Free())
}

func (w *worker) step(ctx context.Context) error {
	switch w.random.IntN(100) {
	case 0:
		return w.replaceEngine(ctx)
	case 1, 2:
		return w.reopenSegment()
	}
	w.on.mu.RLock()
	defer w.on.mu.RUnlock()
	if err := w.equip(); err != nil {
		return err
	}
	switch w.random.IntN(30) {
	case 0:
		return w.replaceMemory()
	case 1:
		return w.registerSpare()
	}
	how := patiently
	if n := w.random.IntN(10); n < 3 {
		how = byCancel + way(n)
	}
	return w.transfer(ctx, how)
}

// equip gets memory and a batch where the engine is a new one.
func (w *worker) equip() (err error) {
	if w.epoch == w.on.epoch {
		return nil
	}
	w.epoch, w.used = w.on.epoch, nil // what the old engine had is unmapped
	if w.memory, err = w.on.engine.Alloc(localBytes, moonpath.AllocOptions{Populate: true}); err != nil {
		return err
	}
	w.batch, err = w.on.engine.NewBatch(moonpath.BatchOptions{Capacity: batchSize})
	return err
}

// replaceEngine closes the engine under the other workers' feet, though not under a batch of theirs, and opens another.
func (w *worker) replaceEngine(ctx context.Context) error {
	w.on.mu.Lock()
	defer w.on.mu.Unlock()
	w.soak.counted(w.on.end())
	w.soak.engines.Add(1)
	return w.on.begin(ctx)
}

func (w *worker) reopenSegment() error {
	w.on.mu.Lock()
	defer w.on.mu.Unlock()
	w.soak.segments.Add(1)
	return w.on.forget(w.areas[w.random.IntN(len(w.areas))].peer)
}

// replaceMemory ends the registration of what the worker uses, while others transfer.
func (w *worker) replaceMemory() (err error) {
	w.inspect()
	w.used = nil
	w.soak.registrations.Add(1)
	if err := w.memory.Free(); err != nil {
		return err
	}
	w.memory, err = w.on.engine.Alloc(localBytes, moonpath.AllocOptions{Populate: true})
	return err
}

// registerSpare registers memory of Go's and ends that at once.
func (w *worker) registerSpare() error {
	w.soak.registrations.Add(1)
	m, err := w.on.engine.Register(make([]byte, spareBytes), moonpath.RegisterOptions{})
	if err != nil {
		return err
	}
	return m.Free()
}

// finish reads all that should be known once more.
func (w *worker) finish() error {
	w.on.mu.RLock()
	defer w.on.mu.RUnlock()
	if err := w.equip(); err != nil {
		return err
	}
	w.inspect()
	w.used = nil
	const step = 8 * mib
	for _, a := range w.areas {
		for off := a.from; off < a.from+knownBytes; off += step {
			j := job{area: a, before: a.peer.state(), off: off, here: w.memory.Bytes()[:step]}
			id, err := w.on.segment(context.Background(), a.peer, j.before.name)
			if err != nil {
				w.blame(&j, time.Now(), err)
				break
			}
			j.request = moonpath.Request{Op: moonpath.OpRead, Local: w.memory.At(0), Len: step, Target: id, Remote: j.before.addr + off}
			begin := time.Now()
			s, _ := w.on.engine.Transfer(context.Background(), j.request)
			w.on.tasks.submitted.Add(1)
			w.judge(&j, s, patiently, begin)
		}
	}
	return nil
}

// inspect looks at the memory that the last batch gave back.
func (w *worker) inspect() {
	for _, b := range w.used {
		if at := notFilled(b, localPoison); at >= 0 {
			w.soak.violate("local memory was written after its task had ended: byte %d of %d is %#x", at, len(b), b[at])
		}
	}
}

// transfer runs one batch.
func (w *worker) transfer(ctx context.Context, how way) error {
	w.inspect()
	w.used = w.used[:0]
	jobs := w.jobs(ctx, how)
	if len(jobs) == 0 {
		return nil
	}
	begin := time.Now()
	statuses, err := w.carryOut(jobs, how)
	if err != nil {
		return err
	}
	w.soak.batches.Add(1)
	took := time.Since(begin)
	w.soak.longest(took)
	if took > endLimit {
		w.soak.violate("a batch took %v to end, want %v at most", took.Round(time.Millisecond), endLimit)
	}
	for i := range jobs {
		if statuses != nil {
			w.judge(&jobs[i], statuses[i], how, begin)
		}
		fill(jobs[i].here, localPoison)
		w.used = append(w.used, jobs[i].here)
	}
	return nil
}

// jobs makes up a batch: ranges do not overlap, on either side.
func (w *worker) jobs(ctx context.Context, how way) []job {
	var jobs []job
	limit := uint64(largestTask)
	count := 1 + w.random.IntN(batchSize)
	if how != patiently {
		limit = scrapBytes
	}
	if how == byContext {
		count = 1
	}
	taken := map[*area][]stretch{}
	local := uint64(0)
	for range count {
		local += w.random.Uint64N(64)
		j := job{area: w.areas[w.random.IntN(len(w.areas))], request: moonpath.Request{Op: moonpath.OpRead}}
		n := randomSize(w.random, limit)
		if local+n > localBytes {
			break
		}
		if w.random.IntN(2) == 0 {
			j.request.Op = moonpath.OpWrite
		}
		j.scrap = j.request.Op == moonpath.OpWrite && how != patiently || n <= scrapBytes && w.random.IntN(20) == 0
		j.bad = w.random.IntN(30) == 0
		base, size := j.area.from, uint64(knownBytes)
		if j.scrap {
			base, size = base+knownBytes, scrapBytes
		}
		j.off = base + w.random.Uint64N(size-n+1)
		if !j.bad && overlaps(taken[j.area], stretch{j.off, n}) {
			continue
		}
		j.before = j.area.peer.state()
		if !j.before.up && w.random.IntN(3) > 0 {
			continue // a peer that is away slows down what there is to do with the others
		}
		id, err := w.on.segment(ctx, j.area.peer, j.before.name)
		if err != nil {
			w.blame(&j, time.Now(), err)
			continue
		}
		j.here = w.memory.Bytes()[local : local+n]
		j.request.Local, j.request.Len, j.request.Target = w.memory.At(local), n, id
		j.request.Remote = j.before.addr + j.off
		if j.bad {
			j.request.Remote = 1 << 20 // nobody's memory
		} else {
			taken[j.area] = append(taken[j.area], stretch{j.off, n})
		}
		j.seed = 2 + w.random.Uint64N(tainted-2)
		if j.request.Op == moonpath.OpWrite {
			fillPattern(j.here, j.seed, j.off)
		} else {
			fill(j.here, localPoison)
		}
		local += n
		jobs = append(jobs, j)
	}
	return jobs
}

func overlaps(taken []stretch, s stretch) bool {
	for _, t := range taken {
		if s.off < t.off+t.n && t.off < s.off+s.n {
			return true
		}
	}
	return false
}

// carryOut submits the jobs and waits for the end of each. Without statuses there were no tasks.
func (w *worker) carryOut(jobs []job, how way) ([]moonpath.Status, error) {
	if how == byContext {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(w.random.IntN(20_000))*time.Microsecond)
		defer cancel()
		s, err := w.on.engine.Transfer(ctx, jobs[0].request)
		if s.State == xfer.Invalid {
			if errors.Is(err, xfer.Interrupted) {
				err = nil // the time was over before it became a task
			}
			return nil, err
		}
		w.on.tasks.submitted.Add(1)
		return []moonpath.Status{s}, nil
	}
	b := w.batch
	if how == byDeadline {
		var err error
		b, err = w.on.engine.NewBatch(moonpath.BatchOptions{Capacity: batchSize, Deadline: time.Duration(1+w.random.IntN(20_000)) * time.Microsecond})
		if err != nil {
			return nil, err
		}
		defer b.Close()
	} else if err := b.Reset(); err != nil {
		return nil, err
	}
	requests := make([]moonpath.Request, len(jobs))
	for i, j := range jobs {
		requests[i] = j.request
	}
	if _, err := b.Submit(context.Background(), requests); err != nil {
		return nil, err
	}
	w.on.tasks.submitted.Add(int64(len(jobs)))
	if how == byCancel {
		timer := time.NewTimer(time.Duration(w.random.IntN(5000)) * time.Microsecond)
		select {
		case <-b.Done():
		case <-timer.C:
		}
		timer.Stop()
		b.Cancel()
		w.await(b, cancelLimit, "a batch that was canceled")
	} else {
		w.await(b, endLimit, "a batch")
	}
	statuses := make([]moonpath.Status, len(jobs))
	for i := range jobs {
		var err error
		if statuses[i], err = b.Status(i); err != nil {
			return nil, err
		}
	}
	w.checkReport(b.Report(), statuses)
	return statuses, nil
}

// checkReport compares the report of a batch with the statuses of its tasks.
func (w *worker) checkReport(r *moonpath.Report, statuses []moonpath.Status) {
	var want, got moonpath.PathReport
	for _, s := range statuses {
		want.Requests++
		if s.State == xfer.Completed {
			want.Bytes += s.Bytes
		} else {
			want.Failed++
		}
	}
	for _, p := range r.Paths {
		got.Requests, got.Bytes, got.Failed = got.Requests+p.Requests, got.Bytes+p.Bytes, got.Failed+p.Failed
	}
	if got.Requests != want.Requests || got.Bytes != want.Bytes || got.Failed != want.Failed || len(r.Requests) != len(statuses) {
		w.soak.violate("the report of a batch adds up to %d requests, %d bytes and %d failures, and the statuses to %d, %d and %d", got.Requests, got.Bytes, got.Failed,
			want.Requests, want.Bytes, want.Failed)
	}
}

// await reports a batch that does not end in time, and waits for it all the same.
func (w *worker) await(b *moonpath.Batch, limit time.Duration, what string) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := b.Wait(ctx); ctx.Err() != nil && errors.Is(err, xfer.Interrupted) {
		w.soak.violate("%s did not end within %v", what, limit)
		b.Cancel()
		_ = b.Wait(context.Background())
	}
}

// judge compares how a job ended with what could happen, and what it moved with the model.
func (w *worker) judge(j *job, s moonpath.Status, how way, begin time.Time) {
	w.on.tasks.add(s)
	w.soak.tasks.add(s)
	after := j.area.peer.state()
	same := after.generation == j.before.generation
	j.area.follow(after.generation)
	completed := s.State == xfer.Completed
	switch {
	case !s.State.Terminal():
		w.soak.violate("a task of a batch that has ended is %v", s.State)
	case j.bad && completed:
		w.soak.violate("a %v at an address that is not the peer's completed at the %v", j.request.Op, j.area.peer)
	case completed && s.Bytes != j.request.Len:
		w.soak.violate("a completed %v of %d bytes says that it moved %d", j.request.Op, j.request.Len, s.Bytes)
	case !completed && s.Err == nil:
		w.soak.violate("a %v ended as %v without an error", j.request.Op, s.State)
	case !completed && !j.bad && how == patiently:
		w.blame(j, begin, s.Err)
	}
	switch {
	case j.bad:
	case j.request.Op == moonpath.OpRead && completed && same:
		w.compare(j)
	case j.request.Op == moonpath.OpWrite && !j.scrap:
		w.note(j, s, same, after)
	}
}

// blame reports a failure that the state of the peer does not excuse.
func (w *worker) blame(j *job, begin time.Time, err error) {
	now := j.area.peer.state()
	if j.before.up && now.up && now.generation == j.before.generation && now.since.Equal(j.before.since) && begin.Sub(now.since) > recovery {
		w.soak.violate("a %v of %d bytes failed at the %v, which has been well for %v: %v", j.request.Op, j.request.Len, j.area.peer,
			begin.Sub(now.since).Round(time.Second), err)
	}
}

// compare looks at what a completed read brought.
func (w *worker) compare(j *job) {
	if j.scrap {
		if at := bytes.IndexByte(j.here, localPoison); at >= 0 {
			w.soak.violate("local memory was read after its task had ended: byte %d of %d, from the %v", at, len(j.here), j.area.peer)
		}
		return
	}
	certain, wrong := j.area.known.compare(j.here, j.off)
	w.soak.compared.Add(int64(certain))
	if wrong >= 0 {
		w.soak.violate("a completed read of %d bytes from the %v brought %#x at byte %d, which is not what was written", len(j.here), j.area.peer, j.here[wrong], wrong)
	}
}

// note enters what a write has left into the model.
func (w *worker) note(j *job, s moonpath.Status, same bool, after state) {
	origin := j.seed
	switch {
	case !same || s.Remote == xfer.Unknown || s.Remote == xfer.Unconfirmed:
		origin = tainted
	case s.State != xfer.Completed:
		origin = unsure
	}
	j.area.known.set(j.off, j.request.Len, origin)
	if after.gone {
		j.area.carry = append(j.area.carry, stretch{j.off, j.request.Len})
	}
}
