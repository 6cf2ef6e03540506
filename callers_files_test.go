package moonpath_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/xfer"
)

// TestTooManyOpenFilesAreSaidSo leaves the process no further file: connections to a peer that is well cannot be made,
// and the errors must not send the reader to the peer. With files again everything works.
func TestTooManyOpenFilesAreSaidSo(t *testing.T) {
	p, other := startPeer(t, mixedBytes), startPeer(t, mixedBytes)
	e := openEngine(t, nil)
	here, id := alloc(t, e, mixedBytes), openName(t, e, p.Name)
	requests, b := mixed(here, id, p.Addr, 100), newBatch(t, e, 100)

	again := withoutFiles(t)
	transferErr := once(b, requests)
	_, openErr := e.OpenSegment(other.Name)
	again()
	for what, err := range map[string]error{"a transfer": transferErr, "opening a segment": openErr} {
		requireFault(t, err, xfer.Socket)
		if !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "side: here; next: this process") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := once(b, requests); err != nil {
		t.Errorf("with files again: %v", err)
	}
	openName(t, e, other.Name)
}

// withoutFiles takes all files that the process may open, until again is called.
func withoutFiles(t *testing.T) (again func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	few := unix.Rlimit{Cur: uint64(len(open)), Max: before.Max}
	var held []*os.File
	for { // numbers below the limit that are free
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, f)
		if uint64(f.Fd()) >= few.Cur {
			break
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
		for _, f := range held {
			f.Close()
		}
	}
}
