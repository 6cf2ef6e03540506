package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

const (
	startLimit = 30 * time.Second
	stopLimit  = 5 * time.Second
)

// target is a process that serves until it is stopped.
type target struct {
	cmd   *exec.Cmd
	name  string
	ended chan struct{} // closed when the process is gone
	last  []byte        // last line it printed; read after ended
}

// startTarget starts a process and waits until ready has taken all it wants from its output. Both output streams are
// one: the published engine says where it listens in its log.
func startTarget(ctx context.Context, env []string, ready func(line []byte) bool, name string, args ...string) (*target, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// The context that starts a target does not end it: stop does, and lets it end in order.
	cmd := command(context.WithoutCancel(ctx), env, name, args...)
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("start %s: %w", base(name), err)
	}
	t := &target{cmd: cmd, name: base(name), ended: make(chan struct{})}
	serving := make(chan struct{})
	go t.follow(r, ready, serving)

	timer := time.NewTimer(startLimit)
	defer timer.Stop()
	select {
	case <-serving:
		return t, nil
	case <-t.ended:
		return nil, fmt.Errorf("%s ended before it was ready%s", t.name, lastWords(t.last))
	case <-timer.C:
		err = fmt.Errorf("%s was not ready within %v", t.name, startLimit)
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.stop()
	return nil, err
}

// follow reads all that the process prints, so that it never waits for a reader.
func (t *target) follow(r io.ReadCloser, ready func([]byte) bool, serving chan<- struct{}) {
	defer close(t.ended)
	lines := bufio.NewScanner(r)
	waiting := true
	for lines.Scan() {
		t.last = bytes.Clone(lines.Bytes())
		if waiting && ready(t.last) {
			waiting = false
			close(serving)
		}
	}
	io.Copy(io.Discard, r) // a line too long for the scanner ends it, and must not end the process
	r.Close()
	t.cmd.Wait() // how it ended says nothing that its output does not
}

// stop ends the process in order, or else by force.
func (t *target) stop() {
	signalGroup(t.cmd, syscall.SIGTERM)
	select {
	case <-t.ended:
		return
	case <-time.After(stopLimit):
	}
	signalGroup(t.cmd, syscall.SIGKILL)
	<-t.ended
}

// alive says why nothing can be measured on t any more.
func (t *target) alive() error {
	select {
	case <-t.ended:
		return fmt.Errorf("%s, the target, has ended%s", t.name, lastWords(t.last))
	default:
		return nil
	}
}

// ticksPerSecond is the unit of processor times in /proc, fixed for user space on every architecture we build for.
const ticksPerSecond = 100

// cpuSeconds is the processor time of all threads of the process since its start.
func (t *target) cpuSeconds() (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", t.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return parseStat(stat)
}

// parseStat adds the user and system time in a line of /proc/PID/stat. The name of the process is in parentheses and may
// hold spaces, so fields count from the last parenthesis.
func parseStat(stat []byte) (float64, error) {
	const user, system = 11, 12
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= system {
		return 0, fmt.Errorf("/proc/PID/stat has %d fields after the name, want more than %d", len(fields), system)
	}
	var ticks uint64
	for _, field := range fields[user : system+1] {
		n, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/PID/stat: processor time: %w", err)
		}
		ticks += n
	}
	return float64(ticks) / ticksPerSecond, nil
}
