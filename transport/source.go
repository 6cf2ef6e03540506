package transport

import (
	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/xfer"
)

// Source is a route's queue, owned by the engine. Takers pull when they have room; any goroutine may call.
type Source interface {
	// Take cuts queued tasks into at most len(dst) chunks and returns their number. A taker that goes idle
	// takes once more after letting go of its lock; one that leaves work behind wakes another.
	Take(w Want, dst []Chunk) int
	// Done gives chunks back, each exactly once; their local memory is quiet. It never calls back into
	// the transport.
	Done(cs []Completion)
	// Waiting reports which queues hold work now; it takes no lock.
	Waiting() QueueSet
}

// Queue is one of a source's queues.
type Queue uint8

const (
	// Small holds requests that must not wait behind bulk traffic.
	Small Queue = iota
	// Bulk holds everything else that the peer has published.
	Bulk
	// Suspect holds requests for memory in no published buffer: the peer may reject them.
	Suspect
	// Queues is their number.
	Queues
)

// SmallLimit is the length in bytes up to which a request goes to the Small queue.
const SmallLimit = 16 << 10

// QueueSet is a set of queues.
type QueueSet uint8

// Set returns the set of the given queues.
func Set(qs ...Queue) QueueSet {
	var s QueueSet
	for _, q := range qs {
		s |= 1 << q
	}
	return s
}

// Has reports whether q is in the set.
func (s QueueSet) Has(q Queue) bool { return s>>q&1 != 0 }

// Want says what a taker has room for.
type Want struct {
	Bytes  uint64   // in all; at least one chunk is given if anything is queued, whatever its length
	Piece  uint64   // largest single chunk; not 0
	Queues QueueSet // served in the order Small, Bulk, Suspect
}

// Chunk lies inside one local region and one remote buffer. It has one owner, from Take to Done.
type Chunk struct {
	Ref    Ref
	Op     xfer.Op
	Queue  Queue
	Local  mem.Lease // held until the task ends
	Off    uint64    // in Local
	Remote uint64
	Len    uint64
}

// Memory returns the chunk's local bytes.
func (c *Chunk) Memory() []byte { return c.Local.View(c.Off, c.Len) }

// Ref names a chunk within its source: slot and generation, so that a late or second Done is recognised.
type Ref struct{ Slot, Gen uint32 }

// Completion gives one chunk back.
type Completion struct {
	Ref    Ref
	Remote xfer.Certainty
	Fault  *xfer.Fault // nil: done
}
