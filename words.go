package moonpath

import (
	"github.com/moonpath-io/moonpath/multi"
	"github.com/moonpath-io/moonpath/selector"
	"github.com/moonpath-io/moonpath/xfer"
)

// The vocabulary, defined in package xfer.
type (
	// Addr names local memory by its address.
	Addr = xfer.Addr
	// BatchID names a batch; the first are 1, 2, 3.
	BatchID = xfer.BatchID
	// Code is an error number; those below 1000 are Mooncake's.
	Code = xfer.Code
	// Fault is the error of everything that can fail.
	Fault = xfer.Fault
	// Op is the direction of a request.
	Op = xfer.Op
	// Pin is a transport that a request insists on.
	Pin = xfer.Pin
	// Request asks for one transfer.
	Request = xfer.Request
	// SegmentID names an opened segment; the first are 1, 2, 3.
	SegmentID = xfer.SegmentID
	// Status is a copy of a task's state.
	Status = xfer.Status
)

// Decision says which path was chosen and why the others were not.
type Decision = selector.Decision

// The description of a batch after the fact.
type (
	// Report describes a batch.
	Report = multi.Report
	// RequestReport describes one request of it.
	RequestReport = multi.RequestReport
	// PathReport adds up the requests that took one path.
	PathReport = multi.PathReport
	// Rejection is a path that was not taken.
	Rejection = multi.Rejection
)

const (
	// OpRead pulls from the target.
	OpRead = xfer.Read
	// OpWrite pushes to the target.
	OpWrite = xfer.Write
	// LocalSegment is the engine's own segment.
	LocalSegment = xfer.LocalSegment
	// NoPin leaves the choice of the path to the engine.
	NoPin = xfer.NoPin
)
