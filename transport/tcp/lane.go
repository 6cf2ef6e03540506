package tcp

import (
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/internal/sysx"
	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// lane is one pipelined connection. Requests pass through a ring: taken from the source at tail, sent, and
// answered at head, in the order of the wire. Whoever holds pumpMu fills the ring and writes: the submitter,
// the reader after answers, or the writer goroutine when the socket was full. The reader goroutine alone
// takes answers, connects, and cleans up.
//
// Lock order: pumpMu, route.moves, recvMu, sendMu.
type lane struct {
	r      *route
	index  int
	queues transport.QueueSet

	up       atomic.Bool // connected
	failed   atomic.Bool // could not be connected; cleared by the watcher, so that it is tried again
	started  sync.Once
	wake     chan struct{}
	conn     *net.TCPConn
	link     link
	stream   *sysx.Stream
	before   *xfer.Fault // route.abandoned when it was connected
	stalled  atomic.Bool // we ended the connection, because nothing moved
	unmapped atomic.Bool // local memory of a request that was to be sent is not there
	hurry    atomic.Bool // a canceled request is half sent: the next standstill ends the connection

	pumpMu sync.Mutex    // the right to fill the ring and to write
	kicked atomic.Bool   // there may be work that the holder of pumpMu has not seen
	full   chan struct{} // passes pumpMu, held, to the writer when the socket is full
	chunks [takeBatch]transport.Chunk
	works  [takeBatch]work
	trial  bool // what is on the lane is a trial, and nothing else

	ring  []entry       // laneSlots of them, from the first connection on
	tail  atomic.Uint64 // next to be filled; written under pumpMu
	sent  atomic.Uint64 // next to be sent or in the middle of it; written under sendMu
	head  atomic.Uint64 // next to be answered; written under recvMu
	bytes atomic.Int64  // payload taken and not finished
	large atomic.Int32  // chunks taken and not finished that are not small

	sendMu  sync.Mutex // held during each attempt to write
	sendOff uint64     // bytes of the entry at sent that are out
	sendVs  []unix.Iovec
	skips   atomic.Bool // the sender has passed canceled entries

	recvMu    sync.Mutex // held during each attempt to read
	got       uint64     // bytes of the answer at head that are in
	recvVs    []unix.Iovec
	statuses  []byte // where status frames are read to
	waste     []byte // where answers to canceled reads go; made on first use
	done      []transport.Completion
	doneBytes uint64
	refused   bool // the answer at head was a rejection, and the peer closes
	early     bool // the answer at head came before its request was out; the reader waits for the writer
	broke     error
	passed    chan struct{} // the writer has passed an entry while the reader waits

	progress  atomic.Uint64 // grows with every call that moved bytes
	answers   uint64        // received on this connection
	fruitless int           // connections in a row that brought no answer
	received  uint64        // route.received at the last of them
	count     laneCounters
}

type laneCounters struct{ requests, bytes, connects, breaks *obs.Counter }

// entry is one request on its way.
type entry struct {
	header [tcpframe.HeaderLen]byte
	work   work
	memory []byte
	skip   bool // canceled before it was sent
	gone   bool // canceled after it was sent: its answer is taken and thrown away
	half   bool // canceled when it was half sent
	code   uint32
}

// takeBatch is how many chunks are taken at once.
const takeBatch = 64

func newLane(r *route, index int, queues transport.QueueSet, g *obs.Group) *lane {
	return &lane{r: r, index: index, queues: queues, wake: make(chan struct{}, 1), full: make(chan struct{}, 1), passed: make(chan struct{}, 1),
		count: laneCounters{g.Counter("requests"), g.Counter("bytes"), g.Counter("connects"), g.Counter("breaks")}}
}

// allocate makes what a lane needs once it is used: most peers never need all their lanes.
func (l *lane) allocate() {
	if l.ring != nil {
		return
	}
	l.ring = make([]entry, laneSlots)
	l.statuses = make([]byte, laneSlots*tcpframe.StatusLen)
	l.sendVs = make([]unix.Iovec, 0, sysx.MaxVectors)
	l.recvVs = make([]unix.Iovec, 0, sysx.MaxVectors)
	l.done = make([]transport.Completion, 0, laneSlots)
}

// start begins the life of the lane, on a connection that is there already or when there is work.
func (l *lane) start(given *link) {
	l.started.Do(func() {
		l.r.spawn(func() { l.run(given) })
		l.r.spawn(l.runWriter)
	})
}

// idle reports whether the lane has nothing to do.
func (l *lane) idle() bool { return l.tail.Load() == l.head.Load() }

// kick makes the lane look for work: in the caller's goroutine if the lane is connected and nobody else is
// at it, by the reader if it has to be connected first.
func (l *lane) kick() {
	l.kicked.Store(true)
	if !l.up.Load() {
		l.start(nil)
		rouse(l.wake)
		return
	}
	if l.pumpMu.TryLock() {
		l.pump(maxInlineCalls)
	}
}

// callLimit is how much payload one call moves at most.
func (l *lane) callLimit() uint64 {
	if l.large.Load() > 0 {
		return uint64(sysx.CallBytes(callBytes))
	}
	return callBytes
}

func rouse(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// maxInlineCalls bounds what a submitter writes for others before the writer takes over.
const maxInlineCalls = 4

// close ends the connection, if there is one, in order if nothing is owed.
func (l *lane) close() {
	if c := l.connection(); c != nil && l.idle() {
		c.Close()
	} else if c != nil {
		reset(c)
	}
}

// connection returns the connection, or nil. Whoever closes it must not hold sendMu or recvMu: Close waits
// for calls under way, and those take the locks.
func (l *lane) connection() *net.TCPConn {
	l.sendMu.Lock()
	defer l.sendMu.Unlock()
	return l.conn
}

// cancel gives back the wanted chunks that are neither half sent nor finished. What was not sent is skipped;
// the answer to what was sent is thrown away when it comes. Holding both locks, no call touches memory. One
// that is half sent goes on, since its neighbours need the connection, unless that comes to a standstill.
func (l *lane) cancel(wanted map[transport.Ref]bool, done []transport.Completion) []transport.Completion {
	l.recvMu.Lock()
	defer l.recvMu.Unlock()
	l.sendMu.Lock()
	defer l.sendMu.Unlock()
	sent := l.sent.Load()
	for i := l.head.Load(); i < l.tail.Load(); i++ {
		e := &l.ring[i%laneSlots]
		if e.skip || e.gone || !wanted[e.work.chunk.Ref] {
			continue
		}
		if i == sent && l.sendOff > 0 {
			e.half = true
			l.hurry.Store(true)
			continue
		}
		c := transport.Completion{Ref: e.work.chunk.Ref, Fault: l.r.interrupted()}
		if i < sent {
			e.gone = true
			c.Remote = unknownIfWrite(&e.work.chunk)
		} else {
			e.skip = true
			c = e.work.given(c.Fault)
		}
		e.memory = nil
		done = append(done, c)
	}
	return done
}
