package xfer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestR_OBS_2_FaultSaysWhereWithWhomWhyAndWhatNext(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, tc := range []struct {
		name  string
		fault Fault
		want  string
	}{
		{
			"everything",
			Fault{Code: Socket, Stage: StageDial, Path: "tcp", Peer: "node1:12001", Remote: Unknown, Detail: "port 15001", Next: "start it", Cause: refused},
			"dial over tcp to node1:12001: network input or output failed: port 15001: dial tcp: connect: connection refused" +
				" (remote state unknown) (code 102; errno 111; side: peer; next: start it)",
		},
		{
			"only what must be",
			Fault{Code: BatchBusy, Stage: StageArgument},
			"argument: batch has unfinished tasks (code 4; side: caller; next: wait for the batch before freeing or resetting it)",
		},
		{
			"path without peer",
			Fault{Code: Closed, Stage: StageClose, Path: "rdma mlx5_0", Next: "stop"},
			"close over rdma mlx5_0: used after close (code 1001; side: caller; next: stop)",
		},
		{
			"peer without path",
			Fault{Code: Metadata, Stage: StageResolve, Peer: "node2", Cause: io.ErrUnexpectedEOF, Next: "wait"},
			"resolve to node2: segment descriptor not available: unexpected EOF (code 200; side: peer; next: wait)",
		},
		{
			"an unconfirmed write is no unknown one",
			Fault{Code: Deadline, Stage: StageComplete, Remote: Unconfirmed, Side: SideNetwork, Detail: "60s", Next: "wait"},
			"complete: time limit ran out: 60s (code 1003; side: network; next: wait)",
		},
		{
			"unknown code",
			Fault{Code: 5, Stage: StageSend},
			"send: unknown code (code 5; next: report the number)",
		},
	} {
		if got := tc.fault.Error(); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, tc.want)
		}
	}
}

func TestFaultIsFoundWithItsCodeAndItsCause(t *testing.T) {
	fault := &Fault{Code: Socket, Stage: StageSend, Cause: fmt.Errorf("lane 3: %w", io.ErrClosedPipe)}
	err := fmt.Errorf("task 7: %w", fault)
	if !errors.Is(err, Socket) || !errors.Is(err, io.ErrClosedPipe) {
		t.Error("the code or the cause is not found through the wrapping")
	}
	if errors.Is(err, DNS) || errors.Is(err, io.EOF) {
		t.Error("a code or cause is found that is not there")
	}
	var found *Fault
	if !errors.As(err, &found) || found != fault {
		t.Errorf("errors.As finds %v, want the fault itself", found)
	}
	for _, e := range (&Fault{Code: Socket}).Unwrap() {
		if e == nil {
			t.Error("a fault without a cause unwraps to a nil error")
		}
	}
}

func TestNextStepFallsBackToTheCode(t *testing.T) {
	if got := (&Fault{Code: DNS, Next: "spell it out"}).NextStep(); got != "spell it out" {
		t.Errorf("own next step: %q", got)
	}
	if got := (&Fault{Code: DNS}).NextStep(); got != DNS.Next() {
		t.Errorf("without one: %q, want the code's", got)
	}
}

func TestErrnoDigsThroughWrapping(t *testing.T) {
	for _, tc := range []struct {
		name  string
		cause error
		want  syscall.Errno
	}{
		{"none", nil, 0},
		{"no system error", io.EOF, 0},
		{"a code is no errno", Socket, 0},
		{"bare", syscall.ENOMEM, syscall.ENOMEM},
		{"net", &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, syscall.ECONNRESET},
		{"path", fmt.Errorf("map: %w", &os.PathError{Op: "open", Path: "x", Err: syscall.EACCES}), syscall.EACCES},
		{"fault in a fault", &Fault{Code: Socket, Cause: syscall.EPIPE}, syscall.EPIPE},
		{"joined", errors.Join(io.EOF, syscall.EINTR), syscall.EINTR},
	} {
		if got := (&Fault{Code: Context, Cause: tc.cause}).Errno(); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestTheSideIsTheMostExactThatIsKnown(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault Fault
		want  Side
	}{
		{"set by who knows", Fault{Code: Socket, Side: SideHere, Cause: syscall.ECONNREFUSED}, SideHere},
		{"nobody listens", Fault{Code: Socket, Cause: syscall.ECONNREFUSED}, SidePeer},
		{"no route", Fault{Code: Socket, Cause: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}, SideNetwork},
		{"out of files", Fault{Code: Socket, Cause: syscall.EMFILE}, SideHere},
		{"an errno that says nothing", Fault{Code: Socket, Cause: syscall.EINVAL}, SideNetwork},
		{"only the code", Fault{Code: WrongPeer}, SideMetadata},
		{"unknown code", Fault{Code: 5}, ""},
	} {
		if got := tc.fault.MustChange(); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
