package meta

import (
	"errors"
	"slices"
	"time"
)

// Failure is a history that violates the model.
type Failure struct {
	History  History
	Shortest History // that still does, as far as Shrink came
	Violation
}

// attempts is how often a shorter history is run before it counts as one that does not fail: how goroutines interleave
// differs from run to run.
const attempts = 3

// shrinkTime is how long Find looks for a shorter history, at least.
const shrinkTime = 5 * time.Second

// Find runs the histories of seed, seed+1, … until one violates the model, n have been run, or the time is over; n = 0
// is no bound. It returns the failure, shrunk, or nil, and how many histories were run.
func (s Shape) Find(open func(seed uint64) (System, error), seed uint64, n int, limit time.Duration) (f *Failure, run int, err error) {
	for end := time.Now().Add(limit); (n == 0 || run < n) && time.Now().Before(end); run++ {
		h := s.Generate(seed + uint64(run))
		err := s.Replay(open, h)
		var v *Violation
		switch {
		case errors.As(err, &v):
			return &Failure{History: h, Shortest: s.Shrink(open, h, max(shrinkTime, 5*s.Patience)), Violation: *v}, run + 1, nil
		case err != nil:
			return nil, run, err
		}
	}
	return nil, run, nil
}

// Shrink looks for a shorter history that violates the model, too, for at most that long: it leaves out runs of steps,
// half of them first, then requests of batches.
func (s Shape) Shrink(open func(seed uint64) (System, error), h History, limit time.Duration) History {
	end := time.Now().Add(limit)
	fails := func(steps []Step) bool {
		for range attempts {
			var v *Violation
			if time.Now().After(end) {
				return false
			}
			if errors.As(s.Replay(open, History{h.Seed, steps}), &v) {
				return true
			}
		}
		return false
	}
	steps := reduce(h.Steps, fails)
	for i := range steps {
		steps[i].Requests = reduce(steps[i].Requests, func(rs []Request) bool {
			shorter := slices.Clone(steps)
			shorter[i].Requests = rs
			return fails(shorter)
		})
	}
	return History{h.Seed, steps}
}

// reduce leaves parts of a list out as long as the rest still fails.
func reduce[T any](list []T, fails func([]T) bool) []T {
	list = slices.Clone(list)
	for n := len(list) / 2; n > 0; n /= 2 {
		for at := 0; at+n <= len(list); {
			shorter := slices.Delete(slices.Clone(list), at, at+n)
			if fails(shorter) {
				list = shorter
			} else {
				at += n
			}
		}
	}
	return list
}
