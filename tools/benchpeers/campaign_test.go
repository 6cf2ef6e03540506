package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var none = func(context.Context) (*target, error) { return nil, nil }

// scripted is a pair that notes when it has a turn, and fails when asked to.
func scripted(name string, cells []cell, rounds int, log *[]string, fails func(turn int) error) *pair {
	turn := 0
	return &pair{name: name, cells: cells, rounds: rounds, start: none,
		initiate: func(_ context.Context, c cell, _ time.Duration) (sample, error) {
			*log = append(*log, fmt.Sprintf("%s %d", name, c.Submitters))
			turn++
			if fails != nil {
				if err := fails(turn); err != nil {
					return sample{}, err
				}
			}
			return sample{bytes: 1, requests: 1, seconds: 1}, nil
		}}
}

func TestPairsTakeTurnsInEveryCell(t *testing.T) {
	cells := []cell{{Submitters: 1}, {Submitters: 2}}
	var log []string
	c := newCampaign([]*pair{
		scripted("a", cells, 2, &log, nil),
		scripted("b", cells, 3, &log, nil),
		scripted("c", cells[1:], 2, &log, nil),
	}, time.Second, &bytes.Buffer{})
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a 1", "b 1", "b 2", "c 2", "a 2",
		"b 1", "a 1", "c 2", "a 2", "b 2",
		"b 1", "b 2",
	}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
	if c.done != c.total() {
		t.Errorf("%d measurements done, %d planned", c.done, c.total())
	}
}

func TestFailuresAreListedAndEndAPairInARow(t *testing.T) {
	cells := []cell{{Submitters: 1}, {Submitters: 2}, {Submitters: 4}}
	var log []string
	broken := errors.New("the peer hung up")
	pairs := []*pair{
		scripted("good", cells, 3, &log, nil),
		scripted("hiccups", cells, 3, &log, func(turn int) error {
			if turn%3 != 0 {
				return broken
			}
			return nil
		}),
		scripted("dead", cells, 3, &log, func(turn int) error {
			if turn > 1 {
				return broken
			}
			return nil
		}),
	}
	var progress bytes.Buffer
	c := newCampaign(pairs, time.Second, &progress)
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	turns := map[string]int{}
	for _, entry := range log {
		turns[strings.Fields(entry)[0]]++
	}
	if diff := cmp.Diff(map[string]int{"good": 9, "hiccups": 9, "dead": 4}, turns); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
	rows := map[string]int{}
	for _, r := range c.rows(pairs) {
		rows[r.Pair] += r.Rounds
	}
	if diff := cmp.Diff(map[string]int{"good": 9, "hiccups": 3, "dead": 1}, rows); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	if len(c.skipped) != 6+3+1 {
		t.Errorf("%d skips, want one for each failure and one for the end of a pair: %q", len(c.skipped), c.skipped)
	}
	all := strings.Join(c.skipped, "\n")
	for _, want := range []string{"dead: everything after 3 failures in a row", "round 1: the peer hung up"} {
		if !strings.Contains(all, want) || !strings.Contains(progress.String(), want) {
			t.Errorf("skips or progress lack %q:\n%s", want, all)
		}
	}
}

func TestWhatCannotStartIsSkippedOnce(t *testing.T) {
	var log []string
	cells := []cell{{Submitters: 1}}
	begun := 0
	absent := &service{begin: func(context.Context) (*target, error) {
		begun++
		return nil, errors.New("no Python")
	}}
	first, second := scripted("first", cells, 3, &log, nil), scripted("second", cells, 3, &log, nil)
	first.start, second.start = absent.start, absent.start
	c := newCampaign([]*pair{first, second, scripted("able", cells, 3, &log, nil)}, time.Second, &bytes.Buffer{})
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"first: no Python", "second: no Python"}, c.skipped); diff != "" {
		t.Errorf("skips (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"able 1", "able 1", "able 1"}, log); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
	if begun != 1 {
		t.Errorf("the service was started %d times, want once for both pairs", begun)
	}
}
