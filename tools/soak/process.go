package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

const (
	startLimit = 30 * time.Second
	stopLimit  = 15 * time.Second // beyond what a target takes to drain
)

// process is a target's process. It dies with this one.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it is gone
	last  []byte        // line that it printed last; read after ended
	err   error         // read after ended
}

// startProcess returns when ready has taken a line of its output for the sign that it serves.
func startProcess(env []string, ready func(line []byte) bool, name string, args ...string) (*process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(name, args...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = w, w
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started, serving := make(chan error), make(chan struct{})
	go p.own(r, w, ready, started, serving)
	if err := <-started; err != nil {
		return nil, err
	}
	timer := time.NewTimer(startLimit)
	defer timer.Stop()
	select {
	case <-serving:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("%s ended before it served: %s", filepath.Base(name), p.last)
	case <-timer.C:
		p.kill()
		return nil, fmt.Errorf("%s did not serve within %v", filepath.Base(name), startLimit)
	}
}

// own starts the process, reads all that it prints and waits for its end, on one thread, with whose end it would be killed.
func (p *process) own(r, w *os.File, ready func([]byte) bool, started chan<- error, serving chan<- struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.ended)
	defer r.Close()
	err := p.cmd.Start()
	w.Close()
	started <- err
	if err != nil {
		return
	}
	lines := bufio.NewScanner(r)
	for waiting := true; lines.Scan(); {
		p.last = bytes.Clone(lines.Bytes())
		if waiting && ready(p.last) {
			waiting = false
			close(serving)
		}
	}
	_, _ = io.Copy(io.Discard, r) // a line too long for the scanner ends it, and must not end the process
	p.err = p.cmd.Wait()
}

func (p *process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// stop asks for an end in order, and reports one that was not.
func (p *process) stop() error {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return p.err
	case <-time.After(stopLimit):
		p.kill()
		return errors.New("it did not end within " + stopLimit.String() + " of SIGTERM and was killed")
	}
}
