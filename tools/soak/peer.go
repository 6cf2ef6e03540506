package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/moonpath-io/moonpath"
)

// peer is a target in a process of its own, which is killed, frozen and started again.
type peer struct {
	kind  string
	index int
	start func() (*process, string, error) // and the segment's name

	mu      sync.Mutex
	process *process
	now     state
}

// state is what those who use a peer have to know of it.
type state struct {
	generation int    // grows when the process is killed, and when the next one serves
	up         bool   // it serves, for all we know; false also while it is frozen
	gone       bool   // there is no process
	name       string // of the segment
	addr       uint64
	since      time.Time // when it came up
}

func (p *peer) state() state {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

func (p *peer) String() string { return fmt.Sprintf("%s target %d", p.kind, p.index) }

// begin starts the process and finds out where its memory is.
func (p *peer) begin(ctx context.Context, bytes uint64) error {
	process, name, err := p.start()
	if err != nil {
		return fmt.Errorf("%v: %w", p, err)
	}
	addr, err := memoryOf(ctx, name, bytes)
	if err != nil {
		process.kill()
		return fmt.Errorf("%v: %w", p, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.process = process
	p.now = state{generation: p.now.generation + 1, up: true, name: name, addr: addr, since: time.Now()}
	return nil
}

// memoryOf asks a target for its memory, with an engine that has no part in the test. The published engine says that it
// serves before it has published its memory.
func memoryOf(ctx context.Context, name string, bytes uint64) (uint64, error) {
	e, err := moonpath.Open(ctx, moonpath.Options{Host: "127.0.0.1", Environ: []string{}, Transports: []string{"tcp"}})
	if err != nil {
		return 0, err
	}
	defer e.Close()
	for deadline := time.Now().Add(startLimit); ; {
		id, err := e.OpenSegmentContext(ctx, name)
		if err == nil {
			desc, err := e.Segment(id)
			if err != nil {
				return 0, err
			}
			for _, b := range desc.Buffers {
				if b.Len >= bytes {
					return b.Addr, nil
				}
			}
			_ = e.CloseSegment(id)
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return 0, errors.Join(fmt.Errorf("%s publishes no %d bytes of memory", name, bytes), err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (p *peer) kill() {
	p.mu.Lock()
	p.now.generation++
	p.now.up, p.now.gone = false, true
	process := p.process
	p.mu.Unlock()
	process.kill()
}

func (p *peer) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.up = false
	p.process.signal(syscall.SIGSTOP)
}

func (p *peer) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.process.signal(syscall.SIGCONT)
	p.now.up, p.now.since = true, time.Now()
}

// alive reports that a process which nobody has killed is gone.
func (p *peer) alive() error {
	p.mu.Lock()
	process, gone := p.process, p.now.gone
	p.mu.Unlock()
	if gone {
		return nil
	}
	select {
	case <-process.ended:
		return fmt.Errorf("%v ended by itself: %v: %s", p, process.err, process.last)
	default:
		return nil
	}
}

// moonpathPeer is our own tool, which keeps its ports.
func moonpathPeer(index int, binary, folder string, bytes uint64) (*peer, error) {
	control, err := freePort()
	if err != nil {
		return nil, err
	}
	data, err := freePort()
	if err != nil {
		return nil, err
	}
	env := []string{"XDG_STATE_HOME=/dev/null", "TMPDIR=" + folder}
	return &peer{kind: "moonpath", index: index, start: func() (*process, string, error) {
		var ready struct{ Segment string }
		process, err := startProcess(env, func(line []byte) bool { return json.Unmarshal(line, &ready) == nil && ready.Segment != "" },
			binary, "target", "--host", "127.0.0.1", "--port", strconv.Itoa(control), "--data-port", strconv.Itoa(data),
			"--buffer", strconv.FormatUint(bytes, 10), "--log-level", "ERROR", "--json")
		return process, ready.Segment, err
	}}, nil
}

// freePort is a port that was free a moment ago, outside of the range from which engines choose.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

var listening = regexp.MustCompile(`P2P handshake, listening on (127\.0\.0\.1:\d+)`)

// cxxPeer is the published engine, which chooses its ports anew.
func cxxPeer(index int, venv, folder string, bytes uint64) (*peer, error) {
	found, err := filepath.Glob(filepath.Join(venv, "lib", "python3*", "site-packages", "mooncake", "transfer_engine_bench"))
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("%s has no transfer_engine_bench", venv)
	}
	env := []string{"MC_FORCE_TCP=1", "TMPDIR=" + folder}
	return &peer{kind: "C++", index: index, start: func() (*process, string, error) {
		var name string
		process, err := startProcess(env, func(line []byte) bool {
			if m := listening.FindSubmatch(line); m != nil {
				name = string(m[1])
			}
			return name != "" && strings.Contains(string(line), "numa node num") // there is a transport by then
		}, found[0], "--mode=target", "--protocol=tcp", "--metadata_server=P2PHANDSHAKE", "--local_server_name=127.0.0.1",
			"--buffer_size="+strconv.FormatUint(bytes, 10))
		return process, name, err
	}}, nil
}
