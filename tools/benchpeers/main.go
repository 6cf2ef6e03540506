package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Where a run leaves what it found, from the root of the repository.
const (
	jsonPath      = "build/bench-peers.json"
	pagePath      = "docs/bench/tcp.md"
	partPagePath  = "build/bench-peers.md"
	yardstickPath = "build/yardstick"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	o, err := parseOptions(os.Args[1:])
	if err == nil {
		err = run(ctx, o, os.Stdout, os.Stderr)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Println(usage)
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, "benchpeers: %v\n%s\n", err, usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "benchpeers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out, progress io.Writer) error {
	if _, err := os.Stat("tools/yardstick"); err != nil {
		return errors.New("this folder is not the root of the repository: run make bench-peers there")
	}
	peers := newPeers(o.moonpath, yardstickPath)
	defer peers.stop()
	cells := matrix(func(block int) bool { return slices.Contains(o.blocks, block) })
	pairs := peers.pairs(cells, o.rounds, o.cxxRounds())
	pairs = slices.DeleteFunc(pairs, func(p *pair) bool { return !o.only.MatchString(p.name) })
	if len(pairs) == 0 {
		return fmt.Errorf("%w: --only %s: no pair has such a name", errUsage, o.only)
	}

	c := newCampaign(pairs, o.duration, progress)
	if err := c.run(ctx); err != nil {
		return fmt.Errorf("stopped, nothing written: %w", err)
	}
	rows := c.rows(pairs)
	p := page{
		environment: environment(time.Now(), o.rounds, o.cxxRounds(), o.duration),
		rows:        rows,
		outcomes:    judge(tcpGates(), rows),
		skipped:     c.skipped,
	}
	return p.publish(o, out)
}

// publish prints and writes what was found.
func (p page) publish(o options, out io.Writer) error {
	where := partPagePath
	if o.whole() {
		where = pagePath
	}
	text, err := json.MarshalIndent(map[string]any{
		"environment": p.environment, "rows": p.rows, "gates": p.outcomes, "skipped": p.skipped,
	}, "", " ")
	if err != nil {
		return err
	}
	if err := write(jsonPath, append(text, '\n')); err != nil {
		return err
	}
	if err := write(where, []byte(p.String())); err != nil {
		return err
	}
	counts := make(map[verdict]int)
	for _, o := range p.outcomes {
		counts[o.Verdict]++
	}
	_, err = fmt.Fprintf(out, "%s\n%s\n%s%s\n%d gates hold, %d missed, %d not measured; see %s and %s\n",
		p.rates(), p.gates(), p.missed(), list("Skipped", p.skipped),
		counts[holds], counts[missed], counts[unmeasured], where, jsonPath)
	if err != nil {
		return err
	}
	if len(p.rows) == 0 {
		return errors.New("nothing could be measured; the list above says why")
	}
	return nil
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
