package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	pagePath     = "docs/bench/netns.md"
	partPagePath = "build/netns.md"
)

type options struct {
	rounds   int
	duration time.Duration
	moonpath string
	only     *regexp.Regexp
}

// whole reports whether the run measures all that the page has.
func (o options) whole() bool {
	return o.rounds >= 3 && o.duration >= 2*time.Second && o.only.String() == ""
}

func parseOptions(args []string, out io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("netns", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.IntVar(&o.rounds, "rounds", 3, "measurements of each kind, which take turns")
	flags.DurationVar(&o.duration, "duration", 2*time.Second, "of one measurement; iperf3 takes whole seconds")
	flags.StringVar(&o.moonpath, "moonpath", "bin/moonpath", "moonpath's tool")
	only := flags.String("only", "", "measure only cells whose name matches this regular expression")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	switch o.only, err = regexp.Compile(*only); {
	case err != nil:
		return o, fmt.Errorf("--only: %w", err)
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q is not a flag", flags.Arg(0))
	case o.rounds < 1 || o.rounds > 100:
		return o, fmt.Errorf("--rounds %d: want 1 to 100", o.rounds)
	case o.duration < time.Second || o.duration > time.Minute:
		return o, fmt.Errorf("--duration %v: want 1s to 1m", o.duration)
	}
	return o, nil
}

func main() {
	runtime.LockOSThread() // commands die with the thread that started them
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	o, err := parseOptions(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "netns:", err)
		os.Exit(2)
	}
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "netns:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out, progress io.Writer) error {
	if err := haveIperf(ctx); err != nil {
		return err
	}
	c := &campaign{options: o, progress: progress}
	if err := c.run(ctx); err != nil {
		return err
	}
	p := page{environment: environment(o), rows: c.rows}
	fmt.Fprint(out, p.table())
	where := partPagePath
	if o.whole() {
		where = pagePath
	}
	if err := os.MkdirAll(where[:strings.LastIndexByte(where, '/')], 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(where, []byte(p.String()), 0o644); err != nil {
		return err
	}
	held, missed := p.verdicts()
	fmt.Fprintf(out, "%d cells hold, %d missed; see %s\n", held, missed, where)
	return nil
}

// environment says what a figure depends on, and nothing that names the machine.
func environment(o options) string {
	release := "of unknown version"
	var name unix.Utsname
	if err := unix.Uname(&name); err == nil {
		if parts := strings.SplitN(unix.ByteSliceToString(name.Release[:]), ".", 3); len(parts) > 1 {
			release = parts[0] + "." + parts[1]
		}
	}
	return fmt.Sprintf("%s, %d cores, Linux %s, %s/%s, %s; %d rounds, %v for each measurement.", time.Now().Format(time.DateOnly),
		runtime.NumCPU(), release, runtime.GOOS, runtime.GOARCH, runtime.Version(), o.rounds, o.duration)
}
