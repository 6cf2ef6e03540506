package cxx

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

//go:embed peer.py
var peerProgram string

// callDeadline exceeds every time-out of the engine: 60 s on the control port, 30 s and a little for a transfer.
const callDeadline = 90 * time.Second

// process is a running peer program: requests go in, answers come out, matched by number.
type process struct {
	cmd      *exec.Cmd
	deadline time.Duration // of each call
	stderr   tail
	gone     chan struct{} // closed when the process has ended and been reaped

	writing sync.Mutex // held during a write to stdin, which a peer that has stopped reading can block
	stdin   io.WriteCloser

	mu      sync.Mutex
	next    uint64
	waiting map[uint64]chan answer
	reason  string // why the process ended, set before gone is closed
}

type answer struct {
	ID    uint64          `json:"id"`
	Value json.RawMessage `json:"value"`
	Error string          `json:"error"`
}

func startProcess(python string, env []string) (*process, error) {
	p := &process{deadline: callDeadline, gone: make(chan struct{}), waiting: map[uint64]chan answer{}}
	// faulthandler adds a Python traceback to a crash inside the engine.
	p.cmd = exec.Command(python, "-X", "faulthandler", "-c", peerProgram)
	p.cmd.Env = append(withoutEngineSettings(p.cmd.Environ()), env...)
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.readAnswers(stdout)
	return p, nil
}

// withoutEngineSettings keeps a developer's own MC_ variables from changing what a test means.
func withoutEngineSettings(env []string) []string {
	var kept []string
	for _, e := range env {
		if !strings.HasPrefix(e, "MC_") {
			kept = append(kept, e)
		}
	}
	return kept
}

func (p *process) readAnswers(stdout io.Reader) {
	answers := json.NewDecoder(stdout)
	var broken error
	for {
		var a answer
		if broken = answers.Decode(&a); broken != nil {
			break
		}
		p.mu.Lock()
		reply := p.waiting[a.ID]
		delete(p.waiting, a.ID)
		p.mu.Unlock()
		if reply != nil {
			reply <- a // has room: one answer per request
		}
	}
	if broken != io.EOF {
		p.kill(fmt.Sprintf("the peer program answered with something else than JSON: %v", broken))
	}
	err := p.cmd.Wait()
	p.mu.Lock()
	if p.reason == "" {
		p.reason = fmt.Sprintf("the process ended by itself (%v)", exitText(err))
	}
	p.mu.Unlock()
	close(p.gone)
}

func exitText(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// kill ends the process; the first reason is the one that is reported.
func (p *process) kill(reason string) {
	p.mu.Lock()
	if p.reason == "" {
		p.reason = reason
	}
	p.mu.Unlock()
	_ = p.cmd.Process.Kill() // fails only if the process has ended already
}

// call sends one request and decodes the value of its answer into result, unless that is nil.
func (p *process) call(name string, args, result any) error {
	deadline := time.AfterFunc(p.deadline, func() {
		p.kill(fmt.Sprintf("no answer to %s within %v, killed", name, p.deadline))
	})
	defer deadline.Stop()
	reply, err := p.send(name, args)
	if err != nil {
		return err
	}
	var a answer
	select {
	case a = <-reply:
	case <-p.gone:
		return p.goneDuring(name)
	}
	if a.Error != "" {
		return &Raised{Call: name, Text: a.Error}
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(a.Value, result); err != nil {
		return fmt.Errorf("%s of the C++ engine answered %s: %w", name, a.Value, err)
	}
	return nil
}

func (p *process) send(name string, args any) (chan answer, error) {
	reply := make(chan answer, 1)
	p.mu.Lock()
	p.next++
	id := p.next
	p.waiting[id] = reply
	p.mu.Unlock()
	line, err := json.Marshal(map[string]any{"id": id, "call": name, "args": args})
	if err != nil {
		return nil, err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	// A failed write means that the process is ending: the caller learns it, and why, from gone.
	_, _ = p.stdin.Write(append(line, '\n'))
	return reply, nil
}

func (p *process) goneDuring(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &PeerGone{Call: name, Reason: p.reason, Stderr: p.stderr.String()}
}
