package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const usage = `Usage:
  citest [flags] [packages] [-- flags of go test]
  citest fuzz [flags] [packages]

Runs the tests of the packages (default ./...), shows progress, prints what failed, and closes with what was skipped
and "N passed, N failed, N skipped". Exit status: 0 when nothing failed, 1 otherwise, 2 for wrong usage.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], ".", os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run is main with its surroundings as arguments.
func run(ctx context.Context, args []string, dir string, out, errOut io.Writer) int {
	fuzz := len(args) > 0 && args[0] == "fuzz"
	if fuzz {
		args = args[1:]
	}
	args, goFlags := splitDashes(args)
	fs := flag.NewFlagSet("citest", flag.ContinueOnError)
	fs.SetOutput(errOut)
	fs.Usage = func() { fmt.Fprint(errOut, usage); fs.PrintDefaults() }
	race := fs.Bool("race", false, "use the race detector; fetches gcc when it is missing and this is root on Debian")
	tags := fs.String("tags", "", "build tags")
	without := fs.String("without", "", "folders to leave out, separated by commas")
	floor := fs.Float64("floor", 0, "fail packages whose tests cover less than this, in per cent; needs -cover or -coverprofile")
	each := fs.Duration("time", 30*time.Second, "fuzz: how long to run each target")
	budget := fs.Duration("budget", 0, "fuzz: name the rest as skipped after this time in all; 0 for no limit")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	patterns := fs.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}

	r := &runner{out: out, errOut: errOut, dir: dir, floor: *floor, env: append(os.Environ(), "CGO_ENABLED=0")}
	if *race {
		r.env = append(r.env, "CGO_ENABLED=1")
		if why := needCompiler(ctx, out, errOut); why != "" {
			return conclude(out, r, counts{skipped: 1}, []skip{{what: "all tests under the race detector", why: why}})
		}
		r.extra = append(r.extra, "-race")
	}
	var tagFlag []string
	if *tags != "" {
		tagFlag = []string{"-tags=" + *tags}
		r.extra = append(r.extra, tagFlag...)
	}
	var err error
	if r.module, err = modulePath(ctx, dir); err != nil {
		fmt.Fprintln(errOut, err)
		return 2
	}
	pkgs, err := r.listPackages(ctx, tagFlag, patterns, split(*without))
	if err != nil {
		fmt.Fprintln(out, err)
		return conclude(out, r, counts{failed: 1}, nil)
	}
	if fuzz {
		sum, skips := r.fuzz(ctx, pkgs, *each, *budget)
		return conclude(out, r, sum, skips)
	}
	sum, skips := r.test(ctx, append(append([]string{}, r.extra...), goFlags...), pkgs)
	return conclude(out, r, sum, skips)
}

// conclude prints the closing list and the last line, and turns the counts into an exit status.
func conclude(out io.Writer, r *runner, sum counts, skips []skip) int {
	printSkips(out, skips, r.module)
	fmt.Fprintf(out, "\n%s\n", sum)
	if sum.failed > 0 {
		return 1
	}
	return 0
}

// splitDashes parts the arguments at the first "--".
func splitDashes(args []string) (ours, theirs []string) {
	for i, a := range args {
		if a == "--" {
			return args[:i], args[i+1:]
		}
	}
	return args, nil
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

func modulePath(ctx context.Context, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m")
	cmd.Dir = dir
	out, err := cmd.Output()
	path := strings.TrimSpace(string(out))
	if err == nil && path == "command-line-arguments" { // what go says where there is no go.mod
		err = errors.New("there is no module here")
	}
	if err != nil {
		return "", fmt.Errorf("go list -m: %w; run this inside the module, with Go in PATH", err)
	}
	return path, nil
}
