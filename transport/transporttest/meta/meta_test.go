package meta_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath/transport/transporttest/meta"
)

var shape = meta.Shape{Sizes: []int{512, 4 << 10, 16 << 10}, MaxLen: 8 << 10, Steps: 40, Batches: 4, Faults: true}

func TestARightSystemPasses(t *testing.T) { meta.Run(t, shape, open(t, none, shape)) }

// Each wrong system has to be found soon, by a message that says what is wrong, and its history made shorter.
func TestWrongSystemsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		bug  bug
		what string // one of these is in the message
	}{
		"drops a byte":                        {dropsAByte, "never there while it was read|, want 0x"},
		"completes early":                     {completesEarly, "never there while it was read|, want 0x"},
		"writes after cancel":                 {writesAfterCancel, ", want 0x"},
		"reads after cancel":                  {readsAfterCancel, "nothing that is under way may touch it|buffer of a write was changed|never there while it was read|buffer of a refused read"},
		"sends the caller's new bytes":        {rereads, ", want 0x|never there"},
		"executes once more after completion": {writesTwice, ", want 0x|never there"},
		"refuses what it has done":            {refusesTooLate, ", want 0x|buffer of a refused read"},
		"serves what is not registered":       {serves, "although its remote memory was never registered"},
		"never ends a task":                   {forgets, "has not ended|ended as waiting"},
		"refuses reads that it has done":      {refusesReadsTooLate, "buffer of a refused read"},
		"scribbles on buffers of writes":      {scribbles, "buffer of a write was changed"},
		"counts one byte less":                {miscountsWhole, "completed with"},
		"blames the peer":                     {blamesThePeer, "local memory is not registered, and the error says otherwise"},
		"hangs":                               {hangs, "Batch.Close has not returned"},
		"counts too little":                   {miscounts, ", want 0x"},
		"cancels by itself":                   {startsCancelled, "canceled although nobody asked"},
	} {
		t.Run(name, func(t *testing.T) {
			shape := shape
			if c.bug == forgets || c.bug == hangs {
				shape.Patience = 100 * time.Millisecond
			}
			shape.Failing = c.bug == startsCancelled // else it fails although nothing is in its way
			f, run, err := shape.Find(open(t, c.bug, shape), 1, 2000, 20*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if f == nil {
				t.Fatalf("not found in %d histories", run)
			}
			t.Logf("found in history %d, %d steps of %d: %v\n%s", run, len(f.Shortest.Steps), len(f.History.Steps), &f.Violation, f.Shortest)
			found := false
			for _, what := range strings.Split(c.what, "|") {
				found = found || strings.Contains(f.What, what)
			}
			if !found {
				t.Errorf("the violation is %q, want %q", f.What, c.what)
			}
			if stuck := c.bug == hangs; stuck != strings.Contains(f.Stacks, "(*tasks).Close") {
				t.Errorf("stacks: %q", f.Stacks)
			}
			// When a write is executed once more is a matter of chance: shorter histories may not show it again.
			if len(f.Shortest.Steps) >= len(f.History.Steps) && c.bug != writesTwice {
				t.Errorf("the history has not been made shorter")
			}
		})
	}
}

// Memory that no request names is looked at, too.
func TestTouchedElsewhereIsFoundByLooking(t *testing.T) {
	h, err := meta.Parse("seed 1; register local 0; register remote 0; do write L0+0 R0+0 64; pause 1ms; look")
	if err != nil {
		t.Fatal(err)
	}
	if err := shape.Replay(open(t, none, shape), h); err != nil {
		t.Error(err)
	}
	err = shape.Replay(open(t, touchesElsewhere, shape), h)
	if err == nil || !strings.Contains(err.Error(), "local slot 1 offset 0") {
		t.Errorf("got %v", err)
	}
}

func TestHistoriesAreText(t *testing.T) {
	for seed := range uint64(50) {
		h := shape.Generate(seed)
		if d := cmp.Diff(h, shape.Generate(seed)); d != "" {
			t.Fatalf("one seed, two histories:\n%s", d)
		}
		for _, text := range []string{h.String(), strings.ReplaceAll(h.String(), "; ", "\n")} {
			again, err := meta.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(h, again); d != "" {
				t.Fatalf("%s\nis read as another history (-want +got):\n%s", text, d)
			}
		}
	}
}

func TestBadHistoriesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"seed x":                            `part 1 of the history, "seed x"`,
		"look; dance":                       `part 2 of the history, "dance": "dance" is no step`,
		"register left 1":                   "neither local nor remote",
		"register local":                    "part 1",
		"wait 1":                            "part 1",
		"submit b1 push L0+0 R0+0 1":        "neither read nor write",
		"submit b1 write L0+0 1":            "is no request such as",
		"submit b1 write L0+-5 R0+0 1":      "is no request such as",
		"do write L0+0 R0+0 1 soon":         "invalid duration",
		"pause":                             "invalid duration",
		"look here":                         "is too much",
		"submit b1 write L0+0 R0+0 1, read": "is no request such as",
	} {
		if _, err := meta.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Steps that name what is not there do nothing, so that parts of histories are histories.
func TestAnyStepsAreAHistory(t *testing.T) {
	h, err := meta.Parse("wait b1; cancel b2; close b3; thaw; unregister local 0; register remote 99; do write L9+0 R0+0 1; submit b1 read L0+600 R0+0 5; " +
		"submit b4 write L0+0 R0+0 18446744073709551615; wait b4")
	if err != nil {
		t.Fatal(err)
	}
	if err := shape.Replay(open(t, none, shape), h); err != nil {
		t.Error(err)
	}
}

func TestSystemThatCannotBeHadIsNoViolation(t *testing.T) {
	none := func(uint64) (meta.System, error) { return nil, errNoMachine }
	if f, _, err := shape.Find(none, 1, 10, time.Minute); f != nil || !errors.Is(err, errNoMachine) {
		t.Errorf("got %v, %v", f, err)
	}
}
