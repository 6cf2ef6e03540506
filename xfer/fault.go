package xfer

import (
	"errors"
	"strconv"
	"strings"
	"syscall"
)

// Retry says what could make a failed attempt succeed.
type Retry uint8

const (
	// Never means that the same request would fail again anywhere.
	Never Retry = iota
	// Refresh means that the peer's descriptor is stale: fetch it and try again.
	Refresh
	// OtherRoute means that another path or a later attempt may succeed.
	OtherRoute
)

// Stage names the layer in which something failed.
type Stage string

// The stages of a transfer and of the calls around it.
const (
	StageArgument Stage = "argument" // the call itself
	StageRegister Stage = "register" // registration of memory
	StageResolve  Stage = "resolve"  // name or descriptor of the peer
	StageSelect   Stage = "select"   // choice of the path
	StageDial     Stage = "dial"     // connection and identity of the peer
	StageSend     Stage = "send"     // request or payload on its way out
	StageComplete Stage = "complete" // answer or payload on its way in
	StageControl  Stage = "control"  // notify, probe and other control messages
	StageClose    Stage = "close"    // draining and closing
)

// Fault is what crosses a package boundary when something fails: which code, where, with whom, and what
// to do next. Find it with errors.As; test its code with errors.Is.
type Fault struct {
	Code   Code
	Stage  Stage
	Path   string // transport, and rail or device where there is one: "tcp", "rdma mlx5_0"
	Peer   string // name of the segment or address of the peer; "" where there is none
	Retry  Retry
	Remote Certainty
	Side   Side   // who has to change something; "" means that errno and code say, see MustChange
	Detail string // what was wrong, with the offending values
	Next   string // what the reader can do about it; "" means Code.Next
	Cause  error  // the error underneath, or nil
}

// Error returns one line: stage, path, peer, meaning, detail, cause, code, error number, the side that has to change
// something, and the next step.
func (f *Fault) Error() string {
	var b strings.Builder
	b.WriteString(string(f.Stage))
	if f.Path != "" {
		b.WriteString(" over " + f.Path)
	}
	if f.Peer != "" {
		b.WriteString(" to " + f.Peer)
	}
	b.WriteString(": " + f.Code.Error())
	if f.Detail != "" {
		b.WriteString(": " + f.Detail)
	}
	if f.Cause != nil {
		b.WriteString(": " + f.Cause.Error())
	}
	if f.Remote == Unknown {
		b.WriteString(" (remote state unknown)")
	}
	b.WriteString(" (code " + strconv.Itoa(int(f.Code)))
	if errno := f.Errno(); errno != 0 {
		b.WriteString("; errno " + strconv.Itoa(int(errno)))
	}
	if side := f.MustChange(); side != "" {
		b.WriteString("; side: " + string(side))
	}
	b.WriteString("; next: " + f.NextStep() + ")")
	return b.String()
}

// Unwrap makes errors.Is see both the code and the cause.
func (f *Fault) Unwrap() []error {
	if f.Cause == nil {
		return []error{f.Code}
	}
	return []error{f.Code, f.Cause}
}

// NextStep returns Next, or what the error number asks for, or the code's general advice; it is never empty.
func (f *Fault) NextStep() string {
	switch {
	case f.Next != "":
		return f.Next
	case f.OutOfFiles():
		return "this process, or its host, has as many files open as it may: raise the limit (ulimit -n), or close some"
	}
	return f.Code.Next()
}

// OutOfFiles reports whether the cause is that no further file can be opened here, which says nothing about the peer.
func (f *Fault) OutOfFiles() bool {
	errno := f.Errno()
	return errno == syscall.EMFILE || errno == syscall.ENFILE
}

// Errno returns the system's error number underneath, or 0.
func (f *Fault) Errno() syscall.Errno { return ErrnoOf(f.Cause) }

// ErrnoOf returns the system's error number that err carries, or 0.
func ErrnoOf(err error) syscall.Errno {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	return 0
}

// CodeOf returns the code that err carries: OK for nil, Context for an error without one.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	var c Code
	if errors.As(err, &c) {
		return c
	}
	return Context
}
