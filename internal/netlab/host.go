package netlab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Host is one end of the line: a network namespace with one address and a loopback of its own.
type Host struct {
	Address string

	pid    int       // a process in the namespace
	holder *exec.Cmd // nil where that is this process
	hold   io.Closer // the holder ends when this is closed
}

// hold starts a process that does nothing in a new namespace.
func hold() (*Host, error) {
	cmd := exec.Command("cat")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("a new network namespace: %w", err)
	}
	return &Host{pid: cmd.Process.Pid, holder: cmd, hold: stdin}, nil
}

func here() *Host { return &Host{pid: os.Getpid()} }

func (h *Host) close() error {
	if h.holder == nil {
		return nil
	}
	return errors.Join(h.hold.Close(), h.holder.Wait())
}

func (h *Host) namespace() string { return "/proc/" + strconv.Itoa(h.pid) + "/ns/net" }

// Command returns a command that runs on the host. It is killed when ctx ends, and when the thread that started it does.
func (h *Host) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + h.namespace(), "--", name}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// commandLimit is far more than one call of ip takes.
const commandLimit = 10 * time.Second

// run runs each line as a command on the host.
func (h *Host) run(lines ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	for _, line := range lines {
		words := strings.Fields(line)
		if out, err := h.Command(ctx, words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
