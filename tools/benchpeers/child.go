package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// command is a child that dies with this process, and whose own children die with it.
func command(ctx context.Context, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return signalGroup(cmd, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

// signalGroup reaches what a child has started, too.
func signalGroup(cmd *exec.Cmd, signal syscall.Signal) error {
	err := syscall.Kill(-cmd.Process.Pid, signal)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// finished is what a child leaves.
type finished struct {
	stdout, stderr []byte
	cpuSeconds     float64
}

// runChild runs a child to its end, at most limit long.
func runChild(ctx context.Context, limit time.Duration, env []string, name string, args ...string) (finished, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := command(ctx, env, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	done := finished{stdout: stdout.Bytes(), stderr: stderr.Bytes()}
	if state := cmd.ProcessState; state != nil {
		done.cpuSeconds = (state.UserTime() + state.SystemTime()).Seconds()
	}
	switch {
	case err == nil:
		return done, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return done, fmt.Errorf("%s did not end within %v", base(name), limit)
	case ctx.Err() != nil:
		return done, ctx.Err()
	}
	return done, fmt.Errorf("%s: %w%s", base(name), err, lastWords(append(done.stdout, done.stderr...)))
}

func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// lastWords is the last line of output that says anything, as the end of a sentence.
func lastWords(output []byte) string {
	lines := bytes.Split(bytes.TrimSpace(output), []byte("\n"))
	last := strings.TrimSpace(string(lines[len(lines)-1]))
	if last == "" {
		return ""
	}
	const enough = 300
	if len(last) > enough {
		last = last[:enough] + "…"
	}
	return ": " + last
}
