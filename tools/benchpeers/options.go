package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/moonpath-io/moonpath/config"
)

const usage = `usage: make bench-peers [ARGS="..."], or go run ./tools/benchpeers [flags] in the root of the repository

  --rounds N        rounds of every measurement (3); pairs that start with the C++ engine take 5 if N is 3 or 4
  --duration D      of one measurement (1s); the C++ engine and iperf3 take whole seconds
  --only REGEXP     measure only pairs with such names
  --blocks LIST     measure only these block lengths, of 4KiB, 64KiB, 1MiB and 16MiB
  --quick           one round of 500ms of 4KiB and 64KiB: under three minutes, and decides no gate
  --moonpath PATH   moonpath's tool (bin/moonpath)

Prints a table of medians and spread and what each gate comes to, and writes build/bench-peers.json and
docs/bench/tcp.md; build/bench-peers.md instead of the latter if anything was left out.`

type options struct {
	rounds   int
	duration time.Duration
	only     *regexp.Regexp
	blocks   []int
	moonpath string
	quick    bool
}

// quickDuration keeps --quick under three minutes.
const quickDuration = 500 * time.Millisecond

// errUsage marks what the caller must change on the command line.
var errUsage = errors.New("wrong usage")

func parseOptions(args []string) (options, error) {
	flags := flag.NewFlagSet("benchpeers", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var o options
	flags.IntVar(&o.rounds, "rounds", 3, "")
	flags.DurationVar(&o.duration, "duration", time.Second, "")
	only := flags.String("only", "", "")
	blocks := flags.String("blocks", "", "")
	flags.BoolVar(&o.quick, "quick", false, "")
	flags.StringVar(&o.moonpath, "moonpath", "bin/moonpath", "")
	err := flags.Parse(args)
	if o.quick {
		o.rounds, o.duration = 1, quickDuration
		flags.Parse(args) // once more, so that a flag that is given wins over what --quick stands for
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w: %w", errUsage, err)
	case flags.NArg() > 0:
		return o, fmt.Errorf("%w: %q is not a flag", errUsage, flags.Arg(0))
	case o.rounds < 1 || o.rounds > 100:
		return o, fmt.Errorf("%w: --rounds %d: want 1 to 100", errUsage, o.rounds)
	case o.duration < 10*time.Millisecond || o.duration > time.Minute:
		return o, fmt.Errorf("%w: --duration %v: want 10ms to 1m", errUsage, o.duration)
	}
	if o.quick && *blocks == "" {
		*blocks = "4KiB,64KiB"
	}
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("%w: --only: %w", errUsage, err)
	}
	o.blocks, err = parseBlocks(*blocks)
	return o, err
}

func parseBlocks(text string) ([]int, error) {
	var known []int
	for _, s := range shapes {
		known = append(known, s.block)
	}
	if text == "" {
		return known, nil
	}
	var out []int
	for field := range strings.SplitSeq(text, ",") {
		n, err := config.ParseSize(field)
		if err != nil {
			return nil, fmt.Errorf("%w: --blocks: %w", errUsage, err)
		}
		if !slices.Contains(known, int(n)) {
			return nil, fmt.Errorf("%w: --blocks: %s is none of 4KiB, 64KiB, 1MiB and 16MiB", errUsage, field)
		}
		out = append(out, int(n))
	}
	return out, nil
}

// cxxRounds is more than rounds where a gate wants that.
func (o options) cxxRounds() int {
	if o.rounds < gateRounds {
		return o.rounds
	}
	return max(o.rounds, cxxGateRounds)
}

// whole says whether a run leaves nothing out.
func (o options) whole() bool {
	everyBlock := !slices.ContainsFunc(shapes, func(s struct{ block, batch int }) bool {
		return !slices.Contains(o.blocks, s.block)
	})
	return everyBlock && o.only.String() == "" && o.rounds >= gateRounds
}
