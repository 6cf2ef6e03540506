package netns

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/internal/netlab"
	"github.com/moonpath-io/moonpath/interop/pattern"
)

var (
	inside  = flag.Bool("inside", false, "this process is in a network namespace of its own")
	serveOn = flag.String("serve", "", "be a target on this address until standard input ends")

	outside error // why this process is in no namespace of its own
)

func TestMain(m *testing.M) {
	flag.Parse()
	switch {
	case *serveOn != "":
		if err := serve(*serveOn); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case !*inside:
		code, err := goInside()
		if err == nil {
			os.Exit(code)
		}
		outside = err
	}
	goleak.VerifyTestMain(m)
}

// goInside runs this program once more, in a namespace of its own, and returns its exit code.
func goInside() (int, error) {
	runtime.LockOSThread() // the child dies with this thread
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", append([]string{"-inside"}, os.Args[1:]...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if exited := (*exec.ExitError)(nil); errors.As(err, &exited) {
		return exited.ExitCode(), nil
	}
	return 0, err
}

const (
	mib         = 1 << 20
	targetBytes = 32 * mib
	targetSeed  = 5 // of the pattern that the target's memory holds at first
	writtenSeed = 6 // of the pattern that the engine's memory holds at first
)

// served is what a target says when it serves.
type served struct {
	Name string
	Addr uint64
}

func serve(address string) error {
	e, err := moonpath.Open(context.Background(), moonpath.Options{Host: address, Environ: []string{}})
	if err != nil {
		return err
	}
	m, err := e.Alloc(targetBytes, moonpath.AllocOptions{})
	if err != nil {
		return errors.Join(err, e.Close())
	}
	copy(m.Bytes(), pattern.Bytes(targetSeed, targetBytes))
	if err := json.NewEncoder(os.Stdout).Encode(served{e.Name(), uint64(m.At(0))}); err != nil {
		return errors.Join(err, e.Close())
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, e.Close())
}

// newLab puts a line between this process and a host beyond it.
func newLab(t *testing.T, path netlab.Path) *netlab.Lab {
	t.Helper()
	if outside != nil {
		t.Skipf("%v: %v", netlab.ErrUnavailable, outside)
	}
	lab, err := netlab.New(netlab.Options{Path: path, Here: true})
	if errors.Is(err, netlab.ErrUnavailable) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	})
	return lab
}

// startTarget starts a target on the far host, for the time of the test.
func startTarget(t *testing.T, lab *netlab.Lab) served {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Not the test's context, which ends before the target can end in order.
	cmd := lab.Far.Command(context.WithoutCancel(t.Context()), self, "-serve", lab.Far.Address)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the target: %v", err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the target said nothing: %v", err)
	}
	var s served
	if err := json.Unmarshal(line, &s); err != nil {
		t.Fatal(err)
	}
	return s
}
