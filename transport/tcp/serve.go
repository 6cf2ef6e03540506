package tcp

import (
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/internal/sysx"
	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// session serves one inbound connection. Stages, all in its goroutine: fill the input buffer; take a header;
// check it and lease its region; move the payload; queue the answer. Answers go out when the input runs dry,
// before a bulk payload, and when their vector is full.
type session struct {
	t      *Transport
	stream *sysx.Stream
	bulk   bool // the request before was not small
	begun  bool // the first frame has been taken: a hello comes too late
	hello  bool // the peer is a moonpath engine that knows who we are
	drains bool // it asked to stay connected after a rejection

	*buffers
	vs    [2]unix.Iovec
	r, w  int  // unread input is in[r:w]
	reads span // encloses the memory of the payloads in out

	// What the watcher and a closing transport look at from other goroutines.
	owed     atomic.Bool   // a payload or an answer is under way
	progress atomic.Uint64 // grows with every call that moved bytes
	ending   atomic.Bool   // end at the next border of an exchange

	connMu sync.Mutex
	conn   *net.TCPConn // nil while the session has no goroutine of its own
	fd     int          // then its socket; -1 afterwards

	unanswered      uint64 // payload of writes whose status frames are queued
	requests, bytes uint64 // not yet added to the transport's counters
}

const (
	maxAnswers    = 512       // status frames queued at once
	maxUnanswered = 1 << 20   // payload of writes that are stored and not yet answered
	outLimit      = 128       // vector entries queued before they are written
	bulkPayload   = 256 << 10 // payload before which queued answers are written, since it takes a while
	regionsPerRun = 8         // regions held at once between two pauses
)

// buffers is what a session needs and the next one can use again: published initiators without their pool
// open a connection for every request.
type buffers struct {
	in     []byte       // bounce buffer
	out    []unix.Iovec // answers: status frames and payloads of reads
	status []byte       // memory of queued status frames
	held   []mem.Lease  // regions that out refers to, or that requests to come may use
	answer [tcpframe.HelloAnswerLen]byte
}

var spare = sync.Pool{New: func() any {
	return &buffers{in: make([]byte, bounceBytes), out: make([]unix.Iovec, 0, outLimit+2),
		status: make([]byte, 0, maxAnswers*tcpframe.StatusLen), held: make([]mem.Lease, 0, regionsPerRun)}
}}

// newFresh returns a session without a goroutine, over a socket that the runtime does not know.
func newFresh(t *Transport, fd int) *session {
	setUserTimeout(fd)
	return &session{t: t, fd: fd, stream: sysx.NewBareStream(fd), buffers: spare.Get().(*buffers)}
}

// adopt makes the runtime wait for the session's socket. After an error the session can only end.
func (s *session) adopt() error {
	s.connMu.Lock()
	defer s.connMu.Unlock()
	conn, err := sysx.Adopt(s.fd)
	s.fd = -1
	if err != nil {
		return err
	}
	s.conn = conn
	tune(conn)
	s.stream, err = sysx.NewStream(conn, nil, nil)
	return err
}

// run serves until the peer leaves, breaks the protocol or names memory that it may not touch.
func (s *session) run() {
	defer mem.ExpectFaults()()
	var tether sysx.Tether
	for s.exchange() {
		if s.bulk {
			tether.Follow()
		}
	}
	s.flush() // what was done before the request that ended the session is answered
	s.end()
	tether.Free()
}

// end closes the connection; the session's memory serves another one.
func (s *session) end() {
	s.release()
	s.addUp()
	s.connMu.Lock()
	if s.conn != nil {
		s.conn.Close()
	} else if s.fd >= 0 {
		sysx.CloseSocket(s.fd)
		s.fd = -1
	}
	s.connMu.Unlock()
	s.out, s.status = s.out[:0], s.status[:0]
	spare.Put(s.buffers)
}

// finish asks the session to end at the next border of an exchange.
func (s *session) finish() {
	s.ending.Store(true)
	if !s.owed.Load() {
		_ = s.conn.SetReadDeadline(time.Unix(1, 0)) // wakes a session that waits for a header
	}
}

// cut ends the connection at once, from any goroutine.
func (s *session) cut() {
	s.connMu.Lock()
	defer s.connMu.Unlock()
	if s.conn != nil {
		reset(s.conn)
	} else if s.fd >= 0 {
		// Its owner, who will find the end of the stream, closes it, by a reset.
		_ = unix.SetsockoptLinger(s.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR)
	}
}

// remote is the peer's address, for the log.
func (s *session) remote() string {
	s.connMu.Lock()
	defer s.connMu.Unlock()
	if s.conn != nil {
		if a := s.conn.RemoteAddr(); a != nil { // the peer may have left before the connection was adopted
			return a.String()
		}
	}
	return sysx.PeerAddress(s.fd)
}

// exchange takes one request and queues its answer; false ends the session.
func (s *session) exchange() bool {
	if s.w-s.r < tcpframe.HeaderLen && !s.fill() {
		return false
	}
	h := tcpframe.ParseHeader(s.in[s.r:])
	frame := s.in[s.r : s.r+tcpframe.HeaderLen]
	s.r += tcpframe.HeaderLen
	first := !s.begun
	s.begun = true
	if first && h.Opcode == tcpframe.OpHello {
		return s.greet(frame)
	}
	s.requests++
	v2 := h.Opcode&tcpframe.OpV2 != 0
	op := h.Opcode &^ tcpframe.OpV2
	code, lease := s.check(op, h)
	if code != tcpframe.OK {
		return s.reject(h, op, v2, code)
	}
	s.bytes += h.Size
	s.bulk = h.Size > transport.SmallLimit
	s.stream.SetBulk(s.bulk)
	if !s.bulk {
		sysx.Hurry()
	}
	memory := lease.View(h.Addr-uint64(lease.Region.Addr), h.Size)
	if op == tcpframe.OpWrite {
		// Answers to earlier reads are still in place, and must not show what is written after them.
		if s.reads.meets(h.Addr, h.Size) && !s.flush() {
			return false
		}
		return s.store(memory) && (!v2 || s.confirm(h.Size))
	}
	if v2 && !s.acknowledge(tcpframe.OK) {
		return false
	}
	if !s.load(memory) {
		return false
	}
	s.reads.add(h.Addr, h.Size)
	return true
}

// span is a range of addresses; the zero span is empty.
type span struct{ low, high uint64 }

func (p *span) add(addr, n uint64) {
	if p.high == 0 {
		p.low = addr
	}
	p.low, p.high = min(p.low, addr), max(p.high, addr+n)
}

func (p *span) meets(addr, n uint64) bool { return addr < p.high && addr+n > p.low }

// fill reads until a whole header is there. Whatever is owed goes out first, and no region is held while
// waiting. A connection without a byte may stay for ever; one with part of a header has two seconds.
func (s *session) fill() bool {
	if s.r > 0 {
		s.w = copy(s.in, s.in[s.r:s.w])
		s.r = 0
	}
	if !s.flush() {
		return false
	}
	s.release()
	s.owed.Store(false)
	s.addUp()
	limited := false
	for s.w < tcpframe.HeaderLen {
		if s.ending.Load() && s.w == 0 {
			return false
		}
		if s.w > 0 && !limited {
			limited = true
			_ = s.conn.SetReadDeadline(time.Now().Add(partialHeader))
		}
		n, err := s.readInto(s.in[s.w:])
		if err != nil {
			return false
		}
		s.w += n
	}
	if limited || s.ending.Load() {
		_ = s.conn.SetReadDeadline(time.Time{})
	}
	s.owed.Store(true)
	s.progress.Add(1)
	return true
}

// readOnce reads what is there; 0 if that is nothing yet.
func (s *session) readOnce() (int, error) {
	s.vs[0] = sysx.Vec(s.in[s.w:])
	return s.stream.TryRead(s.vs[:1])
}

func (s *session) readInto(b []byte) (int, error) {
	s.vs[0] = sysx.Vec(b)
	return s.stream.Read(s.vs[:1])
}

// readDry reads; if nothing is there, what is owed goes out before it waits.
func (s *session) readDry(vs []unix.Iovec) (int, error) {
	if len(s.out) > 0 {
		n, err := s.stream.TryRead(vs)
		if n > 0 || err != nil {
			return n, err
		}
		if !s.flush() {
			return 0, net.ErrClosed
		}
	}
	return s.stream.Read(vs)
}

// check validates a header against the live registrations, as the published engine does (wire spec, section
// 4.5), and also honours remote_accessible.
func (s *session) check(op byte, h tcpframe.Header) (uint32, mem.Lease) {
	if op != tcpframe.OpRead && op != tcpframe.OpWrite || h.Size == 0 || h.Size > xfer.MaxLength || h.Addr > math.MaxUint64-h.Size {
		return tcpframe.BadRequest, mem.Lease{}
	}
	a := xfer.Addr(h.Addr)
	for i := range s.held {
		if s.held[i].Region.Contains(a, h.Size) {
			return tcpframe.OK, s.held[i]
		}
	}
	l, err := s.t.env.Regions.Acquire(a, h.Size)
	if err != nil {
		return tcpframe.AddressRejected, mem.Lease{}
	}
	if !l.Region.Remote {
		l.Release(1)
		return tcpframe.NotPermitted, mem.Lease{}
	}
	if len(s.held) == cap(s.held) {
		if !s.flush() {
			l.Release(1)
			return tcpframe.AddressRejected, mem.Lease{}
		}
		s.release()
	}
	s.held = append(s.held, l)
	return tcpframe.OK, l
}

// release gives all regions back; nothing queued may refer to them.
func (s *session) release() {
	for i := range s.held {
		s.held[i].Release(1)
	}
	s.held = s.held[:0]
}

// store receives a payload: what is in the bounce buffer is copied, the rest is read into place, with the
// bounce buffer behind it so that the next header arrives with the same call.
func (s *session) store(memory []byte) bool {
	n, err := mem.Copy(memory, s.in[s.r:s.w])
	if err != nil {
		s.t.log.Warn("registered memory cannot be written", "error", err)
		return false
	}
	s.r += n
	if n == len(memory) {
		return true
	}
	if len(memory)-n > bulkPayload && !s.flush() {
		return false
	}
	s.r, s.w = 0, 0
	for rest := memory[n:]; len(rest) > 0; {
		part := min(len(rest), sysx.CallBytes(callBytes))
		s.vs[0], s.vs[1] = sysx.Vec(rest[:part]), sysx.Vec(s.in)
		n := 1
		if part == len(rest) {
			n = 2
		}
		m, err := s.readDry(s.vs[:n])
		if err != nil {
			return false
		}
		s.progress.Add(1)
		if m >= len(rest) {
			s.w = m - len(rest)
			return true
		}
		rest = rest[m:]
	}
	return true
}

// load queues a payload for sending.
func (s *session) load(memory []byte) bool {
	for len(memory) > 0 {
		n := min(len(memory), sysx.CallBytes(callBytes))
		s.out = append(s.out, sysx.Vec(memory[:n]))
		memory = memory[n:]
		if (len(s.out) >= outLimit || len(memory) > 0) && !s.flush() {
			return false
		}
	}
	return true
}

// confirm queues the status of a write. A peer that keeps the input full still hears of what is done.
func (s *session) confirm(n uint64) bool {
	s.unanswered += n
	return s.acknowledge(tcpframe.OK) && (s.unanswered < maxUnanswered || s.flush())
}

// acknowledge queues a status frame.
func (s *session) acknowledge(code uint32) bool {
	if len(s.status) == cap(s.status) && !s.flush() {
		return false
	}
	at := len(s.status)
	s.status = s.status[:at+tcpframe.StatusLen]
	frame := s.status[at:]
	tcpframe.PutStatus(frame, code)
	s.queue(frame)
	return true
}

// queue adds bytes of s.status to the answers, in one entry with their neighbours.
func (s *session) queue(frame []byte) {
	if n := len(s.out); n > 0 && len(s.status) > len(frame) {
		before := s.status[len(s.status)-len(frame)-1 : len(s.status)-len(frame)]
		if sysx.Extend(&s.out[n-1], before, len(frame)) {
			return
		}
	}
	s.out = append(s.out, sysx.Vec(frame))
}

// flush writes all queued answers.
func (s *session) flush() bool {
	var err error
	for vs := s.out; len(vs) > 0 && err == nil; {
		var n int
		n, err = s.stream.WriteSome(vs)
		if err == unix.EFAULT && len(vs) > 1 {
			// Some payload is not mapped, and the whole call failed; what lies before it is owed.
			n, err = s.stream.WriteSome(vs[:1])
		}
		vs = sysx.Advance(vs, n)
		s.progress.Add(1)
	}
	s.answered()
	return err == nil
}

// answered empties the queue of answers.
func (s *session) answered() {
	s.out, s.status, s.reads, s.unanswered = s.out[:0], s.status[:0], span{}, 0
}

// flushAtOnce writes all queued answers if the socket takes them; what it does not take stays queued.
func (s *session) flushAtOnce() bool {
	n, err := s.stream.WriteSome(s.out)
	if rest := sysx.Advance(s.out, n); err != nil || len(rest) > 0 {
		s.out = append(s.out[:0], rest...)
		return false
	}
	s.answered()
	return true
}

// reject refuses a request. Towards a moonpath peer the connection stays in step: the payload of a write is
// read and dropped, up to a bound. Towards all others the protocol demands a close; version 1 has no way
// to say more than that.
func (s *session) reject(h tcpframe.Header, op byte, v2 bool, code uint32) bool {
	s.t.count.rejected.Add(1)
	s.t.log.Debug("request refused", "peer", s.remote(), "reason", tcpframe.StatusText(code), "addr", h.Addr, "bytes", h.Size)
	if !v2 {
		return false
	}
	if !s.hello {
		code = tcpframe.AddressRejected // the one refusal that published peers know
	}
	if !s.acknowledge(code) || !s.flush() || !s.drains {
		return false
	}
	return op != tcpframe.OpWrite || h.Size <= drainLimit && s.discard(int(h.Size))
}

// discard reads and drops n bytes of payload.
func (s *session) discard(n int) bool {
	for {
		have := min(n, s.w-s.r)
		s.r += have
		n -= have
		if n == 0 {
			return true
		}
		m, err := s.readInto(s.in)
		if err != nil {
			return false
		}
		s.r, s.w = 0, m
		s.progress.Add(1)
	}
}

// greet answers a hello: it proves which process owns the port, before anything else is said.
func (s *session) greet(frame []byte) bool {
	a := tcpframe.HelloAnswer{Code: tcpframe.OK, Incarnation: s.t.env.Incarnation}
	hello, err := tcpframe.ParseHello(frame)
	if err != nil {
		s.acknowledge(tcpframe.AddressRejected) // as for any unknown opcode
		return false
	}
	version, common := hello.Choose(tcpframe.HelloVersion, tcpframe.HelloVersion)
	switch {
	case hello.Incarnation != s.t.env.Incarnation:
		a.Code = tcpframe.WrongIncarnation
	case !common:
		a.Code = tcpframe.VersionRejected
	default:
		a.Version, a.Features = version, hello.Features&tcpframe.FeatureDrain
		s.hello, s.drains = true, a.Features != 0
		if s.drains {
			a.DrainLimit = drainLimit
		}
	}
	tcpframe.PutHelloAnswer(&s.answer, a)
	s.out = append(s.out, sysx.Vec(s.answer[:]))
	return s.flush() && a.Code == tcpframe.OK
}

func (s *session) addUp() {
	if s.requests > 0 {
		s.t.count.served.Add(s.requests)
		s.t.count.servedBytes.Add(s.bytes)
		s.requests, s.bytes = 0, 0
	}
}
