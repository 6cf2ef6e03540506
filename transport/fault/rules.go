package fault

import (
	"errors"
	"fmt"
	"time"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// Action is what a rule does.
type Action uint8

// The actions. Which of them a rule can have is said there.
const (
	Drop      Action = iota + 1 // swallow
	Delay                       // hold back for a time
	Duplicate                   // do twice
	Reorder                     // let later ones go first
	Corrupt                     // change bytes
	Fail                        // answer with a fault
	Stall                       // hold everything from here on until Plan.Resume
	HalfClose                   // end one direction of a connection in order (FIN) and swallow what follows
	Finish                      // end both directions in order
	Reset                       // end the connection by a reset (RST)
)

var actionNames = [...]string{"?", "drop", "delay", "duplicate", "reorder", "corrupt", "fail", "stall", "half-close", "finish", "reset"}

// String returns the action's name.
func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return "?"
}

// Ops is the set of operations that a rule fits; the zero value is both.
type Ops = transport.OpSet

// Only returns the set of one operation.
func Only(op xfer.Op) Ops { return 1 << op }

// ChunkRule makes chunks of a decorated transport go wrong.
type ChunkRule struct {
	// Do is one of:
	//   Drop: the chunk is not passed on; it comes back, Interrupted or Closed, when it is cancelled or quiesced.
	//   Delay: the chunk is passed on after Delay.
	//   Duplicate: the chunk is executed once more after it has completed, and comes back when both are done.
	//   Reorder: the completion waits until Span others wait, or nothing else is out; they come back in reverse.
	//   Corrupt: one byte of what a read brought is changed. A write's bytes belong to the caller: use a Proxy.
	//   Fail: the chunk is not passed on; it comes back at once with Fault and Remote.
	//   Stall: this chunk and all later ones are not passed on, and nothing of the route comes back, until Plan.Resume.
	Do Action
	When
	Ops      Ops    // 0: both
	From, To uint64 // fits chunks that begin in [From, To) of the peer's memory; both 0: any
	// Answer moves Drop, Delay and Fail to the way back: the chunk has been executed then.
	Answer bool
	Delay  time.Duration
	Span   int            // of Reorder; 0: 4
	Fault  *xfer.Fault    // of Fail; nil: Socket
	Remote xfer.Certainty // of Fail: what it says about the peer's memory. It is the rule's to be honest
}

func (r ChunkRule) when() When     { return r.When }
func (r ChunkRule) action() Action { return r.Do }

func (r ChunkRule) check() error {
	switch {
	case r.Do < Drop || r.Do > Stall:
		return errors.New("no action for chunks: use one of Drop to Stall")
	case r.Do == Delay && r.Delay <= 0:
		return errors.New("a delay has to say how long")
	case r.Do == Corrupt && r.Ops.Has(xfer.Write):
		return errors.New("the bytes of a write are the caller's: corrupt them by a StreamRule of a Proxy")
	case r.Answer && r.Do != Drop && r.Do != Delay && r.Do != Fail:
		return errors.New("only Drop, Delay and Fail have a form for answers")
	case r.Span < 0:
		return fmt.Errorf("span %d is negative", r.Span)
	case r.From > r.To:
		return fmt.Errorf("the range from %#x to %#x is empty", r.From, r.To)
	}
	return nil
}

func (r *ChunkRule) fits(c *transport.Chunk) bool {
	ops := r.Ops
	switch {
	case r.Do == Corrupt:
		ops = Only(xfer.Read)
	case ops == 0:
		ops = transport.BothOps
	}
	return ops.Has(c.Op) && (r.From == 0 && r.To == 0 || c.Remote >= r.From && c.Remote < r.To)
}

// DialRule makes dials of a decorated transport go wrong.
type DialRule struct {
	// Do is one of:
	//   Fail: the dial fails with Fault.
	//   Drop: the dial blocks until its context ends.
	//   Delay: the dial begins after Delay.
	Do Action
	When
	Delay time.Duration
	Fault *xfer.Fault // nil: Socket
}

func (r DialRule) when() When     { return r.When }
func (r DialRule) action() Action { return r.Do }

func (r DialRule) check() error {
	switch {
	case r.Do != Fail && r.Do != Drop && r.Do != Delay:
		return errors.New("no action for dials: use Fail, Drop or Delay")
	case r.Do == Delay && r.Delay <= 0:
		return errors.New("a delay has to say how long")
	}
	return nil
}

// Direction is that of a stream through a proxy.
type Direction uint8

const (
	// ToTarget is from who connected to the proxy's target.
	ToTarget Direction = iota
	// ToClient is the way back.
	ToClient
)

// String returns the direction's name.
func (d Direction) String() string {
	if d == ToClient {
		return "to the client"
	}
	return "to the target"
}

// StreamRule makes the bytes of one direction of a proxied connection go wrong. When counts connections.
type StreamRule struct {
	// Do is one of:
	//   Drop: Bytes bytes are read and discarded; 0: all from At on, a black hole that acknowledges.
	//   Delay: the stream pauses for Delay.
	//   Duplicate: Bytes bytes are sent twice.
	//   Reorder: Bytes bytes and as many that follow change places.
	//   Corrupt: Bytes bytes are changed; 0: one.
	//   Stall: nothing is read until Plan.Resume or Proxy.Resume, so that the sender's window fills.
	//   HalfClose: the receiver sees the end of the stream; what the sender still sends is discarded.
	//   Finish: both ends see the end of the stream, and what they still send is discarded.
	//   Reset: both ends see a reset.
	Do Action
	When
	Direction Direction
	At        uint64 // after that many bytes of the direction
	Bytes     int
	Delay     time.Duration
}

func (r StreamRule) when() When     { return r.When }
func (r StreamRule) action() Action { return r.Do }

// maxSpan bounds the bytes that a proxy holds to repeat or exchange them.
const maxSpan = 64 << 10

func (r StreamRule) check() error {
	held := r.Do == Duplicate || r.Do == Reorder
	switch {
	case r.Do < Drop || r.Do > Reset || r.Do == Fail:
		return errors.New("no action for streams: use one of Drop to Reset, but Fail")
	case r.Direction > ToClient:
		return fmt.Errorf("direction %d is neither ToTarget nor ToClient", r.Direction)
	case r.Do == Delay && r.Delay <= 0:
		return errors.New("a delay has to say how long")
	case r.Bytes < 0 || held && (r.Bytes == 0 || r.Bytes > maxSpan) || r.Do == Corrupt && r.Bytes > maxSpan:
		return fmt.Errorf("%d bytes: use 1 to %d", r.Bytes, maxSpan)
	}
	return nil
}

// onChunk, onPeer and onStream say in an event what a rule acted on.
type (
	onChunk struct {
		*transport.Chunk
		peer *segment.Desc
	}
	onPeer   struct{ *segment.Desc }
	onStream struct {
		conn int
		Direction
	}
)

func (o onChunk) String() string {
	return fmt.Sprintf("%s of %d bytes at %#x of %s", o.Op, o.Len, o.Remote, o.peer.Name)
}
func (o onPeer) String() string   { return "dial of " + o.Name }
func (o onStream) String() string { return fmt.Sprintf("connection %d %s", o.conn, o.Direction) }
