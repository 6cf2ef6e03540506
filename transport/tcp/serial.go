package tcp

//moonpath:goroutines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/internal/sysx"
	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// serial is a connection with one request at a time: for version 1, for memory that the peer has not
// published, and for requests that a broken lane left behind. It is slow and it never mistakes one request's
// failure for another's.
type serial struct {
	r      *route
	queues transport.QueueSet
	wake   chan struct{}

	link link // conn is nil when there is none

	mu       sync.Mutex // guards what other goroutines look at
	current  transport.Ref
	busy     bool
	abort    context.CancelFunc // of the dial that is under way
	canceled atomic.Bool
	active   atomic.Bool   // it is about to take a request, or serves one
	owed     atomic.Bool   // a request is on the wire
	progress atomic.Uint64 // grows with every call that moved bytes
	judging  atomic.Bool   // the request under way is one that a broken lane left behind
	barren   int           // requests in a row whose connections ended, without a byte on any connection
	received uint64        // route.received at the last of them
	count    laneCounters
}

// maxBarren is how many requests in a row may end their connections, before it is the peer and not the requests.
const maxBarren = 8

// maxAttempts is how often a request is sent by itself when the connection ends without an answer.
const maxAttempts = 3

func newSerial(r *route, queues transport.QueueSet, g *obs.Group) *serial {
	return &serial{r: r, queues: queues, wake: make(chan struct{}, 1),
		count: laneCounters{g.Counter("requests"), g.Counter("bytes"), g.Counter("connects"), g.Counter("breaks")}}
}

func (s *serial) rouse() { rouse(s.wake) }

// run serves until the route is over.
func (s *serial) run(given *link) {
	if given != nil {
		s.setLink(*given)
	}
	defer s.drop()
	for {
		select {
		case <-s.wake:
		case <-s.r.ctx.Done():
			return
		}
		for s.r.ctx.Err() == nil && s.one() {
		}
		if s.r.ctx.Err() == nil && len(s.r.lanes) > 0 {
			s.r.Kick() // lanes may wait for a verdict
		}
	}
}

// one takes and serves one request; false means that there is none.
func (s *serial) one() bool {
	s.active.Store(true)
	defer s.active.Store(false)
	w, found := s.take()
	if !found {
		return false
	}
	c := s.serve(&w)
	if c.Remote != xfer.Confirmed {
		s.r.doubt.Store(true)
	}
	s.end()
	s.count.requests.Add(1)
	s.count.bytes.Add(w.chunk.Len)
	s.r.source.Done([]transport.Completion{c})
	if s.judging.Swap(false) && s.r.alone.empty() {
		s.r.Kick()
	}
	return true
}

// take finds the next request. From then on cancel finds it here, so both happen under one lock.
func (s *serial) take() (w work, found bool) {
	s.r.moves.RLock()
	defer s.r.moves.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	var ws [1]work
	s.judging.Store(true)
	if s.r.alone.take(ws[:]) == 0 {
		s.judging.Store(false)
		var cs [1]transport.Chunk
		if s.r.source.Take(transport.Want{Bytes: pieceBytes, Piece: pieceBytes, Queues: s.queues}, cs[:]) == 0 {
			return w, false
		}
		ws[0].chunk = cs[0]
	}
	s.current, s.busy = ws[0].chunk.Ref, true
	s.canceled.Store(false)
	return ws[0], true
}

func (s *serial) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
}

// serve sends one request until it is answered, or has failed often enough.
func (s *serial) serve(w *work) transport.Completion {
	if s.link.conn != nil && s.ended() {
		s.drop()
		s.r.lost.Store(true)
	}
	before := s.r.abandoned.Load()
	for {
		if s.link.conn == nil {
			k, err := s.dial()
			unwanted := s.r.abandonedSince(before)
			if s.canceled.Load() {
				unwanted = s.r.interrupted()
			}
			if unwanted != nil {
				if err == nil {
					s.setLink(k)
				}
				return w.given(unwanted)
			}
			if err != nil {
				var f *xfer.Fault
				if !errors.As(err, &f) {
					f = s.r.fault(xfer.Socket, xfer.StageDial, "connection failed", err)
				}
				s.r.source.Done(s.r.alone.fail(f, nil))
				return w.given(f)
			}
			s.setLink(k)
		}
		s.owed.Store(true)
		c, err := s.exchange(w)
		s.owed.Store(false)
		if err == nil {
			if !s.link.reuse {
				s.drop()
			}
			return c
		}
		s.count.breaks.Add(1)
		s.drop()
		s.r.lost.Store(true)
		abandoned := s.r.abandonedSince(before)
		switch {
		case s.canceled.Load():
			return transport.Completion{Ref: w.chunk.Ref, Remote: unknownIfWrite(&w.chunk), Fault: s.r.interrupted()}
		case abandoned != nil:
			return transport.Completion{Ref: w.chunk.Ref, Remote: unknownIfWrite(&w.chunk), Fault: abandoned}
		case s.r.ctx.Err() != nil:
			return transport.Completion{Ref: w.chunk.Ref, Remote: unknownIfWrite(&w.chunk), Fault: s.r.fault(xfer.Closed, xfer.StageClose, "the path is closed", nil)}
		case errors.Is(err, unix.EFAULT):
			return transport.Completion{Ref: w.chunk.Ref, Remote: unknownIfWrite(&w.chunk), Fault: s.r.fault(xfer.Memory, xfer.StageSend, "local memory is registered but not mapped: "+describe(&w.chunk), err)}
		case timedOut(err):
			return transport.Completion{Ref: w.chunk.Ref, Remote: unknownIfWrite(&w.chunk), Fault: s.r.fault(xfer.Deadline, xfer.StageComplete, "no byte moved for "+s.r.t.opt.stall.String(), err)}
		}
		if w.attempts++; w.attempts >= maxAttempts {
			return s.exhausted(w, err)
		}
	}
}

// dial connects, unless the request that needs it is canceled.
func (s *serial) dial() (link, error) {
	ctx, cancel := context.WithCancel(s.r.ctx)
	defer cancel()
	s.mu.Lock()
	s.abort = cancel
	canceled := s.canceled.Load()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.abort = nil
		s.mu.Unlock()
	}()
	if canceled {
		return link{}, context.Canceled
	}
	return s.r.dial(ctx)
}

// ended reports whether the peer has closed the idle connection, or sent what nobody asked for. A write that goes
// into a closed connection looks like one that arrived if the protocol has no answer to it.
func (s *serial) ended() bool {
	s.limit()
	stream, err := sysx.NewStream(s.link.conn, nil, nil)
	if err != nil {
		return true
	}
	var b [1]byte
	n, err := stream.TryRead([]unix.Iovec{sysx.Vec(b[:])})
	return n > 0 || err != nil
}

// exhausted fails a request to which the peer answers by closing, every time. Published engines do that when
// they refuse: always in version 1, and in version 2 when a reset discards the status.
func (s *serial) exhausted(w *work, err error) transport.Completion {
	f := s.r.fault(xfer.Socket, xfer.StageComplete, "the peer ends the connection at this request: "+describe(&w.chunk), err)
	if w.chunk.Queue == transport.Suspect || s.r.versionOne() {
		f.Code = xfer.Refused
	} else if s.isBarren() {
		s.r.giveUp(s.r.fault(xfer.Socket, xfer.StageComplete, "the peer ends every connection without an answer", err))
	}
	return transport.Completion{Ref: w.chunk.Ref, Remote: unknownIfWrite(&w.chunk), Fault: f}
}

// isBarren counts a request that ended its connections, and reports whether that is the peer's doing.
func (s *serial) isBarren() bool {
	if n := s.r.received.Load(); n != s.received {
		s.received, s.barren = n, 0
	}
	if s.barren++; s.barren < maxBarren {
		return false
	}
	s.barren = 0 // whatever is submitted later may try again
	return true
}

func (s *serial) setLink(k link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link = k
	s.count.connects.Add(1)
	if s.r.ctx.Err() != nil {
		k.conn.Close() // close came before the connection was known
	}
}

// drop closes the connection. Nothing is under way, or the peer is not trusted with what is.
func (s *serial) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link.conn != nil {
		s.link.conn.Close()
		s.link = link{}
	}
}

// close ends what is under way when the route is over.
func (s *serial) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link.conn != nil {
		if s.busy {
			reset(s.link.conn)
		} else {
			s.link.conn.Close()
		}
	}
}

// cancel ends the request under way if it is wanted.
func (s *serial) cancel(wanted map[transport.Ref]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy && wanted[s.current] {
		s.canceled.Store(true)
		if s.abort != nil {
			s.abort()
		}
		if s.link.conn != nil {
			reset(s.link.conn)
		}
	}
}

// cut ends the connection at once, because the peer does not answer.
func (s *serial) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.abort != nil {
		s.abort()
	}
	if s.link.conn != nil {
		reset(s.link.conn)
	}
}

// exchange sends one request and takes its answer. An error means that the connection is of no use any more
// and that no answer came.
func (s *serial) exchange(w *work) (transport.Completion, error) {
	c := &w.chunk
	done := transport.Completion{Ref: c.Ref}
	if s.link.version == 1 {
		return s.exchangeV1(w)
	}
	if err := s.request(c, tcpframe.OpV2|byte(c.Op)); err != nil {
		if err == unix.EFAULT {
			return done, err // the peer waits for the rest
		}
		// The rejection may have come before the payload was out.
		if code, statusErr := s.status(); statusErr == nil && code != tcpframe.OK {
			s.drop()
			return s.refused(w, code), nil
		}
		return done, err
	}
	code, err := s.status()
	switch {
	case err == errBadStatus:
		s.drop()
		done.Remote = unknownIfWrite(c)
		done.Fault = s.r.fault(xfer.BadProtocol, xfer.StageComplete, "", err)
		return done, nil
	case err != nil:
		return done, err
	case code != tcpframe.OK:
		if !s.link.drains {
			s.drop()
		}
		return s.refused(w, code), nil
	case c.Op == xfer.Read:
		return done, s.receive(c.Memory())
	}
	return done, nil
}

// refused fails a request as the peer asked. One that was sent before, without an answer, may have been executed then.
func (s *serial) refused(w *work, code uint32) transport.Completion {
	return w.given(refusal(s.r, &w.chunk, code))
}

// exchangeV1 has no status. A read is confirmed by its last byte. A write is confirmed by reading its last
// byte back on the same connection, where that can be used twice; else nothing is known.
func (s *serial) exchangeV1(w *work) (transport.Completion, error) {
	c := &w.chunk
	done := transport.Completion{Ref: c.Ref}
	if err := s.request(c, byte(c.Op)); err != nil {
		return done, err
	}
	if c.Op == xfer.Read {
		return done, s.receive(c.Memory())
	}
	if !s.link.reuse {
		done.Remote = xfer.Unconfirmed
		return done, nil
	}
	var frame [tcpframe.HeaderLen]byte
	tcpframe.PutHeader(&frame, 1, c.Remote+c.Len-1, tcpframe.OpRead)
	if err := s.send(frame[:]); err != nil {
		return done, err
	}
	return done, s.receive(frame[:1])
}

// request sends header and payload.
func (s *serial) request(c *transport.Chunk, opcode byte) error {
	var frame [tcpframe.HeaderLen]byte
	tcpframe.PutHeader(&frame, c.Len, c.Remote, opcode)
	if c.Op == xfer.Write {
		return s.send(frame[:], c.Memory())
	}
	return s.send(frame[:])
}

func (s *serial) send(parts ...[]byte) error {
	stream, err := sysx.NewStream(s.link.conn, nil, nil)
	if err != nil {
		return err
	}
	for _, p := range parts {
		for len(p) > 0 {
			n := min(len(p), bounceBytes)
			s.limit()
			if err := stream.Write([]unix.Iovec{sysx.Vec(p[:n])}); err != nil {
				return err
			}
			s.progress.Add(1)
			p = p[n:]
		}
	}
	return nil
}

func (s *serial) status() (uint32, error) {
	var frame [tcpframe.StatusLen]byte
	if err := s.receive(frame[:]); err != nil {
		return 0, err
	}
	code, ok := tcpframe.ParseStatus(frame[:])
	if !ok {
		return 0, errBadStatus
	}
	return code, nil
}

func (s *serial) receive(b []byte) error {
	for len(b) > 0 {
		s.limit()
		n, err := s.link.conn.Read(b[:min(len(b), callBytes)])
		b = b[n:]
		if err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		s.progress.Add(1)
		s.r.received.Add(1)
	}
	return nil
}

// limit bounds the next call.
func (s *serial) limit() { _ = s.link.conn.SetDeadline(time.Now().Add(s.r.t.opt.stall)) }

func describe(c *transport.Chunk) string {
	return fmt.Sprintf("%s of %d bytes at %#x", c.Op, c.Len, c.Remote)
}
