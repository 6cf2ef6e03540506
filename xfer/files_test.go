package xfer

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// Whoever has too many files open must not be sent to the peer.
func TestTooManyOpenFilesAreNotThePeersAffair(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE} {
		f := &Fault{Code: Socket, Cause: os.NewSyscallError("socket", errno)}
		if !f.OutOfFiles() || f.MustChange() != SideHere || !strings.Contains(f.Error(), "ulimit -n") {
			t.Errorf("%v", f)
		}
		f.Next = "another step"
		if f.NextStep() != "another step" {
			t.Errorf("%v", f)
		}
	}
	if f := (&Fault{Code: Socket, Cause: syscall.ECONNREFUSED}); f.OutOfFiles() || strings.Contains(f.Error(), "ulimit") {
		t.Errorf("%v", f)
	}
}
