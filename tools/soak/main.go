package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// command is what the command line asks for.
type command struct {
	poison  bool
	json    bool
	cxx     bool
	time    time.Duration
	batches int64
	seed    uint64
	binary  string
}

func parse(args []string, out io.Writer) (command, error) {
	c := command{}
	if len(args) > 0 && args[0] == "poison" {
		c.poison, args = true, args[1:]
	}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.DurationVar(&c.time, "time", 10*time.Minute, "how long; poison ends before that when it has done its batches")
	flags.Uint64Var(&c.seed, "seed", rand.Uint64(), "of all that is random; default: a random one")
	flags.BoolVar(&c.json, "json", false, "print the result as JSON")
	if c.poison {
		flags.Int64Var(&c.batches, "batches", 1_000_000, "how many")
	} else {
		flags.StringVar(&c.binary, "moonpath", "bin/moonpath", "moonpath's tool, which serves as target")
		flags.BoolVar(&c.cxx, "cxx", true, "have a target of the published C++ engine, where interop/venv.sh can provide it")
	}
	err := flags.Parse(args)
	switch {
	case err != nil:
		return c, err
	case flags.NArg() > 0:
		return c, fmt.Errorf("%q is no flag; the only command is poison", flags.Arg(0))
	case c.time < time.Second || c.time > 24*time.Hour:
		return c, fmt.Errorf("--time %v: want 1s to 24h", c.time)
	case c.poison && c.batches < 1:
		return c, fmt.Errorf("--batches %d: want at least 1", c.batches)
	}
	return c, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	c, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
	violated, err := c.run(ctx, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintf(os.Stderr, "soak: %v (seed %d)\n", err, c.seed)
	}
	if err != nil || violated > 0 {
		os.Exit(1)
	}
}

func (c command) run(ctx context.Context, out, progress io.Writer) (violated int64, err error) {
	fmt.Fprintf(progress, "seed %d\n", c.seed)
	if c.poison {
		timed, cancel := context.WithTimeout(ctx, c.time)
		defer cancel()
		r, err := runPoison(timed, c.seed, c.batches, progress)
		if err != nil {
			return 0, err
		}
		violated = int64(len(r.Violations))
		return violated, c.emit(out, r, verdict("poison", violated, r.Seconds, c.seed))
	}
	o := soakOptions{time: c.time, seed: c.seed, binary: c.binary, initiators: 2, workers: 2, targets: 2, pause: 12 * time.Second}
	if _, err := os.Stat(c.binary); err != nil {
		return 0, fmt.Errorf("%w: run make build, or name it with --moonpath", err)
	}
	if c.cxx {
		if o.venv, err = findCxx(ctx); err != nil {
			fmt.Fprintf(progress, "without the C++ engine: %v\n", err)
		}
	}
	r, err := runSoak(ctx, o, progress)
	if err != nil {
		return 0, err
	}
	return r.Violated, c.emit(out, r, verdict("soak", r.Violated, r.Seconds, c.seed))
}

func (c command) emit(out io.Writer, r interface{ print(io.Writer) }, verdict string) error {
	if c.json {
		return json.NewEncoder(out).Encode(r)
	}
	r.print(out)
	_, err := fmt.Fprintln(out, verdict)
	return err
}

// findCxx returns the environment that has the published engine; the error is the reason why there is none.
func findCxx(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join("interop", "venv.sh")).Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := lines[len(lines)-1]
	if err == nil {
		return last, nil
	}
	if last != "" {
		err = errors.New(last)
	}
	return "", err
}
