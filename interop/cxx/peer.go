package cxx

import (
	"fmt"
	"net"
	"strconv"
	"testing"
)

// Peer is a C++ engine in a process of its own, initialized and serving.
type Peer struct {
	// Name is the segment name by which other engines open this one, its control endpoint.
	Name string

	process *process
}

// Start runs a C++ engine on 127.0.0.1 for the time of the test. Each env is NAME=value, such as
// MC_TCP_ENABLE_CONNECTION_POOL=0. It skips the test, with the reason, where the engine is not available, and fails it
// where the engine does not start.
func Start(t testing.TB, env ...string) *Peer {
	t.Helper()
	return StartOn(t, "127.0.0.1", env...)
}

// StartOn is Start for another host, such as [::1] together with MC_USE_IPV6=1.
func StartOn(t testing.TB, host string, env ...string) *Peer {
	t.Helper()
	python, reason := Available()
	if reason != "" {
		t.Skipf("the published C++ engine is not available: %s", reason)
	}
	process, err := startProcess(python, append([]string{"MC_FORCE_TCP=1"}, env...))
	if err != nil {
		t.Fatalf("start of the C++ engine: %v", err)
	}
	p := &Peer{process: process}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("stderr of the C++ engine %s:\n%s", p.Name, p.process.stderr.String())
		}
	})
	if err := p.initialize(host); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *Peer) initialize(host string) error {
	var result struct{ Code, Port int }
	args := map[string]any{"host": host, "metadata": "P2PHANDSHAKE"}
	if err := p.process.call("initialize", args, &result); err != nil {
		return err
	}
	if result.Code != 0 {
		return &CallFailed{Call: "initialize", Code: result.Code}
	}
	p.Name = host + ":" + strconv.Itoa(result.Port)
	if _, _, err := net.SplitHostPort(p.Name); err != nil {
		return fmt.Errorf("initialize of the C++ engine: no endpoint to open it by: %w", err)
	}
	return nil
}

// Kill ends the process at once, as a crash would, and waits for its end. It may be called again.
func (p *Peer) Kill() {
	p.process.kill("killed by the test")
	<-p.process.gone
}

// coded makes a call whose result is an error code of the engine.
func (p *Peer) coded(name string, args any) error {
	var code int
	if err := p.process.call(name, args, &code); err != nil {
		return err
	}
	if code != 0 {
		return &CallFailed{Call: name, Code: code}
	}
	return nil
}
