package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// heartbeat is how long the screen may stay still.
const heartbeat = 20 * time.Second

// runner runs go test once over a list of packages.
type runner struct {
	out, errOut io.Writer
	dir         string   // where the go command runs
	env         []string // of the go command
	module      string
	extra       []string // flags that a repeated run needs, too
	floor       float64  // least coverage of a package in per cent; 0 asks for none
}

// listPackages expands patterns, packages that do not load included: go test names what is wrong with them. It leaves out the packages at or below one of the folders in without.
func (r *runner) listPackages(ctx context.Context, tags []string, patterns, without []string) ([]string, error) {
	args := append(append([]string{"list", "-e"}, tags...), patterns...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env, cmd.Stderr = r.dir, r.env, r.errOut
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w; its message is above", strings.Join(patterns, " "), err)
	}
	var pkgs []string
	for _, p := range strings.Fields(string(out)) {
		s := short(p, r.module)
		if !slices.ContainsFunc(without, func(d string) bool { return s == d || strings.HasPrefix(s, d+"/") }) {
			pkgs = append(pkgs, p)
		}
	}
	if len(pkgs) == 0 {
		return nil, fmt.Errorf("no packages are left of %s; name others, or leave out less", strings.Join(patterns, " "))
	}
	return pkgs, nil
}

// test runs go test -json with flags over pkgs, shows progress, and lists the failures.
// The counts hold at least one failure if anything went wrong.
func (r *runner) test(ctx context.Context, flags, pkgs []string) (counts, []skip) {
	args := append(append([]string{"test", "-json"}, flags...), pkgs...)
	fmt.Fprintf(r.out, "%s, %d packages\n", strings.Join(append([]string{"go test"}, flags...), " "), len(pkgs))
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env, cmd.Stderr = r.dir, r.env, r.errOut
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go test passes it on to the tests
	cmd.WaitDelay = 10 * time.Second
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintf(r.out, "cannot start go test: %v; is Go in PATH?\n", err)
		return counts{failed: 1}, nil
	}

	p := &progress{r: r, total: len(pkgs), started: time.Now(), shown: time.Now(), busy: map[string]time.Time{}}
	stop := p.beat()
	t := newTally()
	readErr := decodeEvents(pipe, func(e event) {
		p.note(e)
		if res := t.add(e); res != nil {
			p.ended(res)
		}
	}, p.raw)
	waitErr := cmd.Wait()
	stop()
	for _, res := range t.abandon() {
		p.ended(res)
	}
	return p.close(readErr, waitErr)
}

// progress is what has been shown so far.
type progress struct {
	r       *runner
	total   int
	started time.Time

	mu    sync.Mutex // the heartbeat prints, too
	shown time.Time
	busy  map[string]time.Time
	done  []*packageResult
}

func (p *progress) note(e event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Action == "start" {
		p.busy[e.Package] = time.Now()
	}
}

func (p *progress) raw(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(p.r.out, line)
}

func (p *progress) ended(res *packageResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, res.pkg)
	p.done = append(p.done, res)
	p.shown = time.Now()
	printPackage(p.r.out, res, len(p.done), p.total, p.r.module)
}

// beat shows what is running whenever nothing else was shown for a while.
func (p *progress) beat() (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(heartbeat / 4)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case now := <-tick.C:
				p.still(now)
			}
		}
	}()
	return func() { close(quit); <-ended }
}

func (p *progress) still(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.shown) < heartbeat {
		return
	}
	p.shown = now
	what := "building"
	var names []string
	for pkg, since := range p.busy {
		names = append(names, fmt.Sprintf("%s (%d s)", short(pkg, p.r.module), int(now.Sub(since).Seconds())))
	}
	if len(names) > 0 {
		slices.Sort(names)
		what = "running " + strings.Join(names, ", ")
	}
	fmt.Fprintf(p.r.out, "        … %s; %d s in all\n", what, int(now.Sub(p.started).Seconds()))
}

func (p *progress) close(readErr, waitErr error) (counts, []skip) {
	var sum counts
	var fs []failure
	var skips []skip
	for _, res := range p.done {
		sum.add(res.counts)
		fs = append(fs, res.failures...)
		skips = append(skips, res.skips...)
	}
	printFailures(p.r.out, fs, p.r.module, p.r.extra)
	for _, low := range p.belowFloor() {
		sum.failed++
		fmt.Fprintln(p.r.out, low)
	}
	switch {
	case sum.failed > 0:
	case readErr != nil:
		sum.failed++
		fmt.Fprintf(p.r.out, "\nThe output of go test broke off: %v.\n", readErr)
	case waitErr != nil:
		sum.failed++
		fmt.Fprintf(p.r.out, "\ngo test ended with %v although no test failed; its message is above.\n", waitErr)
	case sum.passed == 0:
		sum.failed++
		fmt.Fprintf(p.r.out, "\nNo test passed and none failed: a run like that proves nothing, so it counts as a failure.\n")
	}
	return sum, skips
}

// belowFloor names the packages whose tests cover less than the floor.
func (p *progress) belowFloor() []string {
	var low []string
	for _, res := range p.done {
		var have float64
		if _, err := fmt.Sscan(res.coverage, &have); err == nil && have < p.r.floor {
			low = append(low, fmt.Sprintf("%s: its tests cover %.1f%% of its statements, the floor is %.0f%%; add tests or say in the commit why not",
				short(res.pkg, p.r.module), have, p.r.floor))
		}
	}
	slices.Sort(low)
	return low
}
