package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/moonpath-io/moonpath/xfer"
)

const (
	childReady = 10 * time.Second
	childEnd   = drainBound + 2*time.Second // how long the child may take to drain and exit
)

// child is the process that demo moves bytes to: this program as target. It ends with demo, however that ends.
type child struct {
	ready readyLine
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process is gone; err is set before
	err   error

	mu    sync.Mutex
	log   strings.Builder // its standard error
	lines chan string     // the same, line by line, for whoever waits for one
}

// startChild returns when the child serves.
func startChild(ctx context.Context, buffer string) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, childError(err, "")
	}
	c := &child{cmd: exec.Command(program, "target", "--host", defaultHost, "--buffer", buffer, "--json"), ended: make(chan struct{}), lines: make(chan string, 64)}
	// The signal comes with the end of the thread that started the child, so the goroutine below keeps its thread. A
	// group of its own keeps Ctrl-C away from it: demo ends it in order.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, childError(err, "")
	}
	errs, err := c.cmd.StderrPipe()
	if err != nil {
		return nil, childError(err, "")
	}
	started := make(chan error, 1)
	go c.own(started, errs)
	if err := <-started; err != nil {
		return nil, childError(err, "")
	}
	if err := c.await(ctx, out); err != nil {
		c.cmd.Process.Kill()
		<-c.ended
		return nil, childError(err, c.output())
	}
	return c, nil
}

// own starts the process, copies its log and waits for its end, all on one thread.
func (c *child) own(started chan<- error, errs io.Reader) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.ended)
	err := c.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	defer close(c.lines)
	for scan := bufio.NewScanner(errs); scan.Scan(); {
		c.mu.Lock()
		c.log.WriteString(scan.Text() + "\n")
		c.mu.Unlock()
		select {
		case c.lines <- scan.Text():
		default: // nobody waits for so many
		}
	}
	c.err = c.cmd.Wait()
}

// await reads the line that says that the child serves.
func (c *child) await(ctx context.Context, out io.Reader) error {
	got := make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(out).ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &c.ready)
		}
		got <- err
	}()
	limit := time.NewTimer(childReady)
	defer limit.Stop()
	select {
	case err := <-got:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
		return fmt.Errorf("it was not ready within %v", childReady)
	}
}

// logged waits for a line of the child's log that holds text.
func (c *child) logged(ctx context.Context, text string) bool {
	for {
		select {
		case line, open := <-c.lines:
			if !open {
				return false
			}
			if strings.Contains(line, text) {
				return true
			}
		case <-ctx.Done():
			return false
		}
	}
}

func (c *child) output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.String()
}

// stop asks the child to drain and exit, and makes sure that it does.
func (c *child) stop() error {
	c.cmd.Process.Signal(syscall.SIGTERM)
	limit := time.NewTimer(childEnd)
	defer limit.Stop()
	select {
	case <-c.ended:
	case <-limit.C:
		c.cmd.Process.Kill()
		<-c.ended
		return childError(fmt.Errorf("it did not end within %v and was killed", childEnd), c.output())
	}
	if c.err != nil {
		return childError(c.err, c.output())
	}
	return nil
}

func childError(err error, log string) error {
	detail := "the target process of the demo failed"
	if log != "" {
		detail += ", having said: " + strings.TrimSpace(log)
	}
	return &toolError{
		exit: exitFailed, code: xfer.Context, stage: "demo", detail: detail, cause: err,
		next: "run moonpath target --buffer 128MiB by itself to see what it says",
	}
}
