package tcp

import (
	"time"

	"github.com/moonpath-io/moonpath/config"
)

// options are the settings of the transport, resolved once.
type options struct {
	lanes    int  // pipelined connections to one peer, at most
	forceV1  bool // speak version 1 as initiator
	connect  time.Duration
	silence  time.Duration // the same if the control port does not answer either; 0: no such limit
	stall    time.Duration // longest time without a byte while something is owed
	inbound  int           // connections served at once
	lowPort  int
	highPort int
}

func resolve(v *config.Values) options {
	o := options{
		lanes:   int(v.Int("tcp.lanes")),
		forceV1: v.Text("tcp.protocol") == "1",
		connect: v.Duration("tcp.connect_timeout"),
		inbound: int(v.Int("tcp.max_inbound")),
		silence: v.Duration("tcp.silence_timeout"),
		// The published engine has two limits, for the status and for each 64 KiB of payload, and the
		// smaller one wins while a status is awaited (wire spec, section 4.6). Ours starts anew with
		// every byte, so one limit serves both.
		stall: min(v.Duration("tcp.status_timeout"), v.Duration("tcp.progress_timeout")),
	}
	o.lowPort, o.highPort = config.PortRange(v)
	return o
}

// Sizes that shape the data path. They were chosen by measurement on loopback; docs/bench/tcp.md shows the result.
const (
	// pieceBytes is the largest chunk that a lane takes: large requests are spread over lanes in such pieces.
	pieceBytes = 1 << 20
	// nearWindow and farWindow bound the payload that one lane has taken and not finished, within a host and across
	// a network, where it has to fill bandwidth times delay.
	nearWindow = 4 << 20
	farWindow  = 16 << 20
	// laneSlots bounds the chunks that one lane has taken and not finished; a power of two.
	laneSlots = 512
	// callBytes bounds the payload of one vectored call, so that a call is short and an answer that
	// arrives meanwhile does not wait long for the sender's bookkeeping.
	callBytes = 512 << 10
	// freshLimit is the largest payload that is served before a connection has a goroutine.
	freshLimit = 64 << 10
	// bounceBytes is the size of a session's input buffer: freshLimit and a header at least.
	bounceBytes = 68 << 10
	// drainLimit is the largest payload of a rejected write that a session discards to stay connected;
	// not below pieceBytes, so that between moonpath peers no rejection ends a connection.
	drainLimit = pieceBytes
	// partialHeader is how long a session waits for the rest of a header.
	partialHeader = 1750 * time.Millisecond
)
