package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/interop/cxx"
	"github.com/moonpath-io/moonpath/interop/pattern"
)

// tool is the built command line.
type tool struct{ path string }

// buildTool builds it for one test.
func buildTool(t *testing.T) tool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "moonpath")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, "../cmd/moonpath")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	return tool{path}
}

// toolLimit bounds one call of the tool.
const toolLimit = 30 * time.Second

// run wants that exit code and returns standard output.
func (c tool) run(t *testing.T, code int, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), toolLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.path, args...)
	cmd.Env = withoutSettings(cmd.Environ())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		t.Fatalf("moonpath %s: %v", strings.Join(args, " "), err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("moonpath %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, stderr.String())
	}
	return out
}

func withoutSettings(env []string) (kept []string) {
	for _, e := range env {
		if !strings.HasPrefix(e, "MC_") {
			kept = append(kept, e)
		}
	}
	return kept
}

func writeFile(t *testing.T, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "payload")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// measured is what a test wants to know of a result of bench.
type measured struct {
	Op        string `json:"op"`
	Block     uint64 `json:"block_bytes"`
	Batch     int    `json:"batch"`
	Transport string `json:"transport"`
	Requests  uint64 `json:"requests"`
	Bytes     uint64 `json:"bytes"`
	Verified  *bool  `json:"verified"`
	Errors    int    `json:"errors"`
}

func TestToolWithCxxTarget(t *testing.T) {
	const size = 128 * mib // more than the tool's own memory, so that it makes several rounds
	peer := cxx.Start(t)
	addr := allocCxx(t, peer, size)
	moonpath := buildTool(t)
	at := func(off uint64) string { return fmt.Sprintf("%#x", addr+off) }

	t.Run("write and read", func(t *testing.T) {
		payload := pattern.Bytes(110, 70*mib+13)
		moonpath.run(t, 0, "write", "--segment", peer.Name, "--addr", at(7), "--file", writeFile(t, payload))
		wantCxx(t, peer, "write", addr+7, payload)
		wantCxx(t, peer, "before the write", addr, make([]byte, 7))
		wantCxx(t, peer, "behind the write", addr+7+uint64(len(payload)), make([]byte, 64))

		file := filepath.Join(t.TempDir(), "read")
		moonpath.run(t, 0, "read", "--segment", peer.Name, "--addr", at(8), "--length", strconv.Itoa(len(payload)-2), "--file", file)
		got, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, payload[1:len(payload)-1]) {
			t.Errorf("the file that was read has %d bytes, not those that were written (%v)", len(got), err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		file := writeFile(t, make([]byte, 100))
		moonpath.run(t, 5, "write", "--segment", peer.Name, "--addr", at(size-99), "--file", file)
		moonpath.run(t, 5, "read", "--segment", peer.Name, "--addr", at(size), "--length", "1", "--file", filepath.Join(t.TempDir(), "none"))
	})
	t.Run("bench", func(t *testing.T) {
		out := moonpath.run(t, 0, "bench", "--segment", peer.Name, "--op", "write,read", "--block", "4KiB,1MiB", "--batch", "16", "--threads", "2",
			"--duration", "200ms", "--transport", "tcp", "--verify", "--json")
		var results []measured
		if err := json.Unmarshal(out, &results); err != nil || len(results) != 4 {
			t.Fatalf("%d results, want 4 (%v)\n%s", len(results), err, out)
		}
		for _, r := range results {
			if r.Transport != "tcp" || r.Requests == 0 || r.Bytes != r.Requests*r.Block || r.Errors != 0 || r.Verified == nil || !*r.Verified {
				t.Errorf("%s of %d bytes: %+v, want verified bytes over tcp", r.Op, r.Block, r)
			}
		}
	})
	t.Run("control", func(t *testing.T) {
		moonpath.run(t, 0, "probe", peer.Name)
		moonpath.run(t, 0, "notify", peer.Name, "--name", "tool", "--text", "grüß dich")
		got, err := peer.Notifies()
		if err != nil || len(got) != 1 || got[0] != (cxx.Notify{Name: "tool", Text: "grüß dich"}) {
			t.Errorf("notifies %v (%v)", got, err)
		}
	})
}

func TestToolAsTargetOfCxx(t *testing.T) {
	const size = 8 * mib
	peer := cxx.Start(t)
	local := allocCxx(t, peer, size)
	moonpath := buildTool(t)
	cmd := exec.CommandContext(t.Context(), moonpath.path, "target", "--host", "127.0.0.1", "--buffer", strconv.Itoa(size), "--json")
	cmd.Env = withoutSettings(cmd.Environ())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(toolLimit, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	var ready struct {
		Segment string
		Buffers []struct{ Addr, Length uint64 }
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil || len(ready.Buffers) != 1 {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("moonpath target printed %q (%v)", line, err)
	}
	remote := ready.Buffers[0].Addr
	fillCxx(t, peer, local, size, 111)
	if err := peer.Transfer(cxx.Write, ready.Segment, local, remote, size); err != nil {
		t.Error(err)
	}
	if err := peer.Zero(local, size); err != nil {
		t.Fatal(err)
	}
	if err := peer.Transfer(cxx.Read, ready.Segment, local+1, remote+1, size-2); err != nil {
		t.Error(err)
	}
	wantCxx(t, peer, "read", local+1, pattern.Bytes(111, size)[1:size-1])

	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	within(t, "the end of the target with idle connections", soon, func() {
		if err := cmd.Wait(); err != nil {
			t.Errorf("moonpath target: %v", err)
		}
	})
}
