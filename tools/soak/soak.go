package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moonpath-io/moonpath"
)

// soakOptions say what a run consists of.
type soakOptions struct {
	time       time.Duration
	seed       uint64
	binary     string        // moonpath's tool
	venv       string        // with the published engine; "" for none
	initiators int           // engines in this process
	workers    int           // of each engine
	targets    int           // processes of the tool
	pause      time.Duration // longest time without trouble for a target; 0: nobody troubles the targets
}

// soak is one run.
type soak struct {
	options soakOptions
	peers   []*peer
	engine  []*initiator

	tasks                                     tally
	batches, engines, segments, registrations atomic.Int64
	kills, freezes                            atomic.Int64
	compared                                  atomic.Int64 // bytes that were certain and right
	memory                                    memorySamples
	mu                                        sync.Mutex
	violations                                []string
	slowest                                   time.Duration // batch, from its submission to its end
	violated                                  atomic.Int64
	begin                                     time.Time
}

// result is what a run found.
type result struct {
	Seed          uint64   `json:"seed"`
	Seconds       float64  `json:"seconds"`
	Targets       []string `json:"targets"`
	Batches       int64    `json:"batches"`
	Tasks         counts   `json:"tasks"`
	Longest       float64  `json:"longest_batch_seconds"`
	Compared      int64    `json:"bytes_compared"`
	Kills         int64    `json:"kills"`
	Freezes       int64    `json:"freezes"`
	Engines       int64    `json:"engines_replaced"`
	Segments      int64    `json:"segments_closed"`
	Registrations int64    `json:"registrations"`
	MemoryEarly   uint64   `json:"rss_early"`
	MemoryLate    uint64   `json:"rss_late"`
	Left          []string `json:"left"`
	Violated      int64    `json:"violated"`
	Violations    []string `json:"violations"`
}

func (s *soak) violate(format string, args ...any) {
	s.violated.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.violations) < enough {
		s.violations = append(s.violations, fmt.Sprintf("after %v: ", time.Since(s.begin).Round(time.Millisecond))+fmt.Sprintf(format, args...))
	}
}

// longest notes how long a batch took.
func (s *soak) longest(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slowest = max(s.slowest, took)
}

// counted reports counters that do not add up and an engine that does not close.
func (s *soak) counted(disagree []string, err error) {
	for _, d := range disagree {
		s.violate("%s", d)
	}
	if err != nil {
		s.violate("close of an engine: %v", err)
	}
}

// runSoak runs until the time is over or ctx ends, and then looks at what is left.
func runSoak(ctx context.Context, o soakOptions, progress io.Writer) (result, error) {
	folder, err := os.MkdirTemp("", "moonpath-soak-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(folder)
	if err := warmUp(ctx); err != nil {
		return result{}, err
	}
	before, err := takeResidue(folder)
	if err != nil {
		return result{}, err
	}
	s := &soak{options: o, begin: time.Now()}
	if err := s.run(ctx, folder, progress); err != nil {
		return result{}, err
	}
	r := result{Seed: o.seed, Seconds: time.Since(s.begin).Seconds(), Batches: s.batches.Load(), Tasks: s.tasks.counts(), Longest: s.slowest.Seconds(), Compared: s.compared.Load(),
		Kills: s.kills.Load(), Freezes: s.freezes.Load(), Engines: s.engines.Load(), Segments: s.segments.Load(), Registrations: s.registrations.Load()}
	for _, p := range s.peers {
		r.Targets = append(r.Targets, p.String())
	}
	if r.Left, err = settle(folder, before); err != nil {
		return r, err
	}
	for _, l := range r.Left {
		s.violate("left behind: %s", l)
	}
	var flat error
	if r.MemoryEarly, r.MemoryLate, flat = s.memory.judge(); flat != nil {
		s.violate("%v", flat)
	}
	if r.Compared == 0 {
		s.violate("no byte was compared, so the run shows nothing")
	}
	r.Violated, r.Violations = s.violated.Load(), s.violations
	return r, nil
}

// warmUp makes the runtime and the packages keep what they keep for good, such as the poller's descriptor.
func warmUp(ctx context.Context) error {
	e, err := moonpath.Open(ctx, moonpath.Options{Host: "127.0.0.1", Environ: []string{}})
	if err != nil {
		return err
	}
	return e.Close()
}

func (s *soak) run(ctx context.Context, folder string, progress io.Writer) (err error) {
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.startPeers(ctx, folder); err != nil {
		return err
	}
	var workers []*worker
	for i := range s.options.initiators {
		on, err := newInitiator(ctx, i%2 == 1)
		if err != nil {
			return err
		}
		s.engine = append(s.engine, on)
		for range s.options.workers {
			w := s.newWorker(on, uint64(len(workers)))
			if err := w.equip(); err != nil { // before memory is sampled
				return err
			}
			workers = append(workers, w)
		}
		fmt.Fprintf(progress, "engine %d: %s\n", i, on.engine.Name())
	}
	timed, cancel := context.WithTimeout(ctx, s.options.time)
	defer cancel()
	stop := everySeconds(5, func() { s.show(progress) })
	defer stop()
	sampled := s.memory.start()
	defer sampled()
	var running sync.WaitGroup
	errs := make([]error, len(workers)+len(s.peers))
	fail := func(i int, err error) {
		if errs[i] = err; err != nil {
			cancel()
		}
	}
	for i, w := range workers {
		running.Go(func() { fail(i, w.run(timed)) })
	}
	for i, p := range s.peers {
		random := rand.New(rand.NewPCG(s.options.seed, uint64(1000+i)))
		running.Go(func() { fail(len(workers)+i, s.trouble(timed, p, random)) })
	}
	running.Wait()
	sampled()
	for _, w := range workers {
		errs = append(errs, w.finish())
	}
	for _, w := range workers {
		errs = append(errs, w.close())
	}
	return errors.Join(errs...)
}

func (s *soak) newWorker(on *initiator, number uint64) *worker {
	w := &worker{soak: s, on: on, random: rand.New(rand.NewPCG(s.options.seed, number))}
	for _, p := range s.peers {
		from := number * shareBytes
		w.areas = append(w.areas, &area{peer: p, from: from, generation: p.state().generation, known: newModel(from, knownBytes)})
	}
	return w
}

func (s *soak) targetBytes() uint64 {
	return uint64(s.options.initiators*s.options.workers) * shareBytes
}

func (s *soak) startPeers(ctx context.Context, folder string) error {
	for i := range s.options.targets {
		p, err := moonpathPeer(i, s.options.binary, folder, s.targetBytes())
		if err != nil {
			return err
		}
		s.peers = append(s.peers, p)
	}
	if s.options.venv != "" {
		p, err := cxxPeer(len(s.peers), s.options.venv, folder, s.targetBytes())
		if err != nil {
			return err
		}
		s.peers = append(s.peers, p)
	}
	for _, p := range s.peers {
		if err := p.begin(ctx, s.targetBytes()); err != nil {
			return err
		}
	}
	return nil
}

// trouble kills or freezes a peer again and again; it serves again when trouble returns.
func (s *soak) trouble(ctx context.Context, p *peer, random *rand.Rand) error {
	between := func(low, high time.Duration) time.Duration {
		return low + time.Duration(random.Int64N(int64(high-low)))
	}
	for s.options.pause > 0 && wait(ctx, between(s.options.pause/6, s.options.pause)) {
		if err := p.alive(); err != nil {
			return err
		}
		if random.IntN(2) == 0 {
			s.kills.Add(1)
			p.kill()
			wait(ctx, between(time.Millisecond, 2*time.Second))
			if err := p.begin(context.WithoutCancel(ctx), s.targetBytes()); err != nil {
				return err
			}
		} else {
			s.freezes.Add(1)
			p.freeze()
			wait(ctx, between(100*time.Millisecond, 8*time.Second))
			p.thaw()
		}
	}
	return nil
}

// wait reports whether the time passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// stop closes engines, before their peers as ever, and ends the processes.
func (s *soak) stop() error {
	for _, on := range s.engine {
		s.counted(on.end())
	}
	for _, p := range s.peers {
		if p.process == nil {
			continue // it did not start
		}
		if p.kind != "moonpath" {
			p.process.kill()
		} else if err := p.process.stop(); err != nil {
			s.violate("%v did not end in order: %v", p, err)
		}
	}
	return nil
}

func (s *soak) show(progress io.Writer) {
	fmt.Fprintf(progress, "%4.0f s: %d batches, %.1f GB moved, %.1f GB compared, %d kills, %d freezes, %d MiB resident, %d violations\n", time.Since(s.begin).Seconds(),
		s.batches.Load(), float64(s.tasks.bytes.Load())/1e9, float64(s.compared.Load())/1e9, s.kills.Load(), s.freezes.Load(), s.memory.last.Load()>>20, s.violated.Load())
}
