package main

import (
	"context"
	"time"
)

// sample is one measurement of a pair in a cell.
type sample struct {
	bytes, requests int64
	seconds         float64
	cpuSeconds      float64 // of both ends
	latency         latency
}

// latency is what only moonpath's own tool reports, in microseconds.
type latency struct{ p50, p99 float64 }

// pair is an initiator and a target.
type pair struct {
	name   string
	cells  []cell
	rounds int
	// start has the target serve, once for all pairs that share it. Its error is the reason why the pair is skipped.
	start func(context.Context) (*target, error)
	// initiate measures one cell, and counts the processor time of the initiator only.
	initiate func(context.Context, cell, time.Duration) (sample, error)
}

// measure runs one cell and adds what the target has used meanwhile.
func (p *pair) measure(ctx context.Context, c cell, d time.Duration) (sample, error) {
	t, err := p.start(ctx)
	if err != nil {
		return sample{}, err
	}
	if t == nil { // nothing but the initiator takes part
		return p.initiate(ctx, c, d)
	}
	if err := t.alive(); err != nil {
		return sample{}, err
	}
	before, err := t.cpuSeconds()
	if err != nil {
		return sample{}, err
	}
	s, err := p.initiate(ctx, c, d)
	if err != nil {
		return sample{}, err
	}
	after, err := t.cpuSeconds()
	if err != nil {
		return sample{}, err
	}
	s.cpuSeconds += after - before
	return s, nil
}

// service starts its target when it is first needed, and keeps the outcome for every pair that shares it.
type service struct {
	begin   func(context.Context) (*target, error)
	started bool
	target  *target
	err     error
}

func (s *service) start(ctx context.Context) (*target, error) {
	if !s.started {
		s.started = true
		s.target, s.err = s.begin(ctx)
	}
	return s.target, s.err
}

func (s *service) stop() {
	if s.target != nil {
		s.target.stop()
	}
}
