package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

func TestR_BAT_1_PoisonedBatchesStayPoisoned(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	const batches = 3000
	r, err := runPoison(ctx, 7, batches, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Violations) > 0 {
		t.Errorf("seed %d:\n%s", r.Seed, strings.Join(r.Violations, "\n"))
	}
	if r.Batches != batches {
		t.Errorf("%d of %d batches within the time", r.Batches, batches)
	}
	// Each way to end has to have happened, or else nothing was shown about it.
	if c := r.Tasks; c.Completed == 0 || c.Failed == 0 || c.Canceled == 0 || c.Timeout == 0 || c.Invalid != 0 {
		t.Errorf("%+v", c)
	}
	t.Logf("%.0f batches per second: %+v", float64(r.Batches)/r.Seconds, r.Tasks)
}
