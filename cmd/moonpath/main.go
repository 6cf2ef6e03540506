package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:])) }

// run parses args, runs the command and returns the exit code.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the first signal asks the command to end, a second one ends the process

	var line commandLine
	a := &app{ctx: ctx, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, common: &line.Common}
	parsed, err := newParser(&line).Parse(args)
	if err != nil {
		line.Common.JSON = line.Common.JSON || slices.Contains(args, "--json")
		return a.fail(usageError(err))
	}
	err = parsed.Run(a)
	a.keepRun(parsed.Selected().Name, err)
	if err != nil {
		return a.fail(err)
	}
	return exitOK
}
