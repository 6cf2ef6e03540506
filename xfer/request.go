package xfer

import "math"

// Op is the direction of a request, with Mooncake's numbers.
type Op uint8

const (
	// Read pulls bytes from the target into local memory.
	Read Op = 0
	// Write pushes bytes from local memory to the target.
	Write Op = 1
)

// String returns "read" or "write".
func (o Op) String() string {
	if o == Write {
		return "write"
	}
	return "read"
}

// MemKind says which processor owns a piece of memory.
type MemKind uint8

// HostMem is ordinary memory of this process.
const HostMem MemKind = 0

// String returns the name used in reports.
func (k MemKind) String() string {
	if k == HostMem {
		return "host"
	}
	return "unknown"
}

// Pin is an interned transport name that a request insists on; NoPin lets the selector choose. The
// engine that interned it hands it out and is the only one that understands it.
type Pin uint16

// NoPin leaves the choice of the transport to the selector.
const NoPin Pin = 0

// Addr names local memory by its address, as callers of Mooncake do. Only package mem turns it into a
// pointer, and only inside a registration.
type Addr uint64

// A handle holds an index from 1 in its low half and a generation above it, so the first ones are
// 1, 2, 3 and a stale one is recognised.
type (
	// SegmentID names an opened segment; 0 is the engine's own.
	SegmentID uint64
	// RegionID names a registration of local memory.
	RegionID uint64
	// BatchID names a batch.
	BatchID uint64
)

// LocalSegment is the engine's own segment.
const LocalSegment SegmentID = 0

// MaxLength is the largest length of one request in bytes: what fits a signed 64-bit count.
const MaxLength = math.MaxInt64

// Request asks for one transfer. It is copied when submitted; the caller may reuse its slice at once.
type Request struct {
	Op     Op
	Pin    Pin
	Local  Addr      // first byte of local memory, inside one or more registrations
	Len    uint64    // in bytes; 0 completes at once without traffic
	Target SegmentID // where the remote memory is
	Remote uint64    // absolute address in the target's space, opaque here
}
