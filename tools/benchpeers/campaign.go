package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// maxFailures in a row end a pair, so that one that hangs does not hang the run.
const maxFailures = 3

// campaign measures pairs against each other.
type campaign struct {
	pairs    []*pair
	duration time.Duration
	progress io.Writer

	samples map[key][]sample
	skipped []string // what was not measured, and why
	done    int      // measurements so far, failed ones included
	started time.Time
}

type key struct {
	pair string
	cell cell
}

func newCampaign(pairs []*pair, d time.Duration, progress io.Writer) *campaign {
	return &campaign{pairs: pairs, duration: d, progress: progress, samples: make(map[key][]sample)}
}

// run goes through all rounds. It returns an error only if ctx ends; everything else is a skip.
func (c *campaign) run(ctx context.Context) error {
	if err := c.prepare(ctx); err != nil {
		return err
	}
	c.started = time.Now()
	cells, rounds := c.cells(), c.rounds()
	failures := make(map[*pair]int)
	for round := range rounds {
		for i, cell := range cells {
			taking := c.taking(cell, round)
			if len(taking) == 0 {
				continue
			}
			c.say(round, rounds, i, len(cells), cell)
			// What comes first finds an idle machine and what follows a busy one; nobody shall always be first.
			turn := (round + i) % len(taking)
			for _, p := range slices.Concat(taking[turn:], taking[:turn]) {
				c.measure(ctx, p, cell, round, failures)
				if err := ctx.Err(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// prepare starts every target before anything is measured, so that what is missing is known at once.
func (c *campaign) prepare(ctx context.Context) error {
	var able []*pair
	for _, p := range c.pairs {
		_, err := p.start(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.skip("%s: %v", p.name, err)
			continue
		}
		able = append(able, p)
	}
	c.pairs = able
	return nil
}

func (c *campaign) skip(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	c.skipped = append(c.skipped, line)
	fmt.Fprintln(c.progress, "not measured:", line)
}

func (c *campaign) measure(ctx context.Context, p *pair, cell cell, round int, failures map[*pair]int) {
	s, err := p.measure(ctx, cell, c.duration)
	c.done++
	switch {
	case ctx.Err() != nil:
	case err == nil:
		failures[p] = 0
		k := key{p.name, cell}
		c.samples[k] = append(c.samples[k], s)
	default:
		c.skip("%s, %v, round %d: %v", p.name, cell, round+1, err)
		if failures[p]++; failures[p] == maxFailures {
			c.skip("%s: everything after %d failures in a row", p.name, maxFailures)
			c.pairs = slices.DeleteFunc(slices.Clone(c.pairs), func(other *pair) bool { return other == p })
		}
	}
}

// taking lists who has a turn in a cell.
func (c *campaign) taking(cell cell, round int) []*pair {
	var out []*pair
	for _, p := range c.pairs {
		if round < p.rounds && slices.Contains(p.cells, cell) {
			out = append(out, p)
		}
	}
	return out
}

func (c *campaign) cells() []cell {
	var out []cell
	for _, p := range c.pairs {
		for _, cell := range p.cells {
			if !slices.Contains(out, cell) {
				out = append(out, cell)
			}
		}
	}
	return out
}

func (c *campaign) rounds() int {
	most := 0
	for _, p := range c.pairs {
		most = max(most, p.rounds)
	}
	return most
}

// total is the number of measurements that are planned.
func (c *campaign) total() int {
	n := 0
	for _, p := range c.pairs {
		n += p.rounds * len(p.cells)
	}
	return n
}

func (c *campaign) say(round, rounds, i, n int, cell cell) {
	elapsed := time.Since(c.started)
	left := "…"
	if c.done > 0 {
		left = (elapsed / time.Duration(c.done) * time.Duration(max(0, c.total()-c.done))).Round(time.Second).String()
	}
	fmt.Fprintf(c.progress, "round %d of %d, cell %d of %d: %v (%d of %d measurements, %v elapsed, about %s left)\n",
		round+1, rounds, i+1, n, cell, c.done, c.total(), elapsed.Round(time.Second), left)
}
