package cxx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// installDeadline bounds venv.sh: a download of 46 MB and a few Debian packages.
const installDeadline = 8 * time.Minute

var environment = sync.OnceValues(func() (python, reason string) {
	root, err := moduleRoot()
	if err != nil {
		return "", err.Error()
	}
	ctx, cancel := context.WithTimeout(context.Background(), installDeadline)
	defer cancel()
	return runVenvScript(ctx, filepath.Join(root, "interop", "venv.sh"))
})

// Available returns the Python interpreter that can load the C++ engine, or the reason, in one line, why there is none.
// The first call in a process makes the environment if need be, which can take minutes; exactly one result is empty.
func Available() (python, reason string) { return environment() }

func runVenvScript(ctx context.Context, script string) (python, reason string) {
	cmd := exec.CommandContext(ctx, script)
	cmd.Stderr = os.Stderr // progress of an installation
	// pip and apt-get are children of the script, so that a deadline has to end the whole group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	stdout, err := cmd.Output()
	last := lastLine(stdout)
	switch {
	case ctx.Err() != nil:
		return "", fmt.Sprintf("%s did not finish within %v", script, installDeadline)
	case err != nil && last == "":
		return "", fmt.Sprintf("%s: %v", script, err)
	case err != nil:
		return "", last
	}
	return filepath.Join(last, "bin", "python"), ""
}

func lastLine(text []byte) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return strings.TrimSpace(string(lines[len(lines)-1]))
}

// moduleRoot is the nearest folder upwards with a go.mod; a test runs in the folder of its package.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod in this folder or above it: run the test inside the source tree")
		}
		dir = parent
	}
}
