package meta

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	seedFlag      = flag.Uint64("meta.seed", 0, "seed of the first random history; 0: a new one")
	stepsFlag     = flag.Int("meta.steps", 40, "steps of a random history")
	historiesFlag = flag.Int("meta.histories", 0, "random histories for each system; 0: as many as there is time for")
	timeFlag      = flag.Duration("meta.time", 700*time.Millisecond, "time for the random histories of each system")
	patienceFlag  = flag.Duration("meta.patience", 20*time.Second, "what has not ended by then never will; less makes a history that hangs short sooner")
	historyFlag   = flag.String("meta.history", "", "the text of one history to run instead")
)

// Run runs random histories on systems that open makes, as many as the flags say, and fails the test with the first
// that violates the model, its seed, and a shorter one. The flags decide about the shape's Steps and Patience.
func Run(t *testing.T, shape Shape, open func(seed uint64) (System, error)) {
	t.Helper()
	shape.Patience = *patienceFlag
	if *historyFlag != "" {
		h, err := Parse(*historyFlag)
		if err != nil {
			t.Fatal(err)
		}
		if err := shape.Replay(open, h); err != nil {
			t.Fatal(err)
		}
		return
	}
	shape.Steps = *stepsFlag
	seed := *seedFlag
	for seed == 0 {
		seed = rand.Uint64()
	}
	limit := *timeFlag
	if *historiesFlag > 0 {
		limit = time.Hour
	}
	f, run, err := shape.Find(open, seed, *historiesFlag, limit)
	switch {
	case err != nil:
		t.Fatal(err)
	case f != nil:
		if f.Stacks != "" {
			t.Log(f.Stacks)
		}
		t.Fatalf("history %d violates the model:\n%v\nrun it again with -run '^%s$' -meta.seed=%d -meta.histories=1 -meta.steps=%d\nor, shorter, with -meta.history='%s'",
			run, &f.Violation, t.Name(), f.History.Seed, shape.Steps, f.Shortest)
	}
	t.Logf("%d histories of %d steps from seed %d", run, shape.Steps, seed)
}
