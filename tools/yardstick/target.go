package main

import (
	"errors"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// bounceBytes holds what arrives ahead of the payload being read: headers, and small payloads whole.
	bounceBytes = 64 << 10
	// maxStatuses bounds the answers to writes that wait for one call.
	maxStatuses = 1024
	// maxAnswers bounds the vector of answers to reads, two entries each: the sooner it leaves, the sooner the
	// initiator has work.
	maxAnswers = 128
)

// target serves every connection of a listener on one block of memory.
type target struct {
	mem  []byte
	base uint64

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	served sync.WaitGroup
}

func newTarget(mem []byte) *target {
	return &target{mem: mem, base: addressOf(mem), conns: make(map[net.Conn]struct{})}
}

// serve accepts until l is closed, then closes what it has accepted and waits for it.
func (t *target) serve(l *net.TCPListener) error {
	defer t.served.Wait()
	defer t.closeAll()
	for {
		c, err := l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		t.remember(c)
		t.served.Go(func() {
			defer t.forget(c)
			if v, err := newConn(c); err == nil {
				s := newSession(t, v)
				s.run() // an error ends the connection; the initiator sees that and reports it
			}
		})
	}
}

func (t *target) remember(c net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns[c] = struct{}{}
}

func (t *target) forget(c net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, c)
	c.Close()
}

func (t *target) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.conns {
		c.Close()
	}
}

// at returns the memory a header names. An address below the base wraps to an offset that is far too large.
func (t *target) at(h header) ([]byte, bool) {
	offset, whole := h.addr-t.base, uint64(len(t.mem))
	known := h.op == opRead || h.op == opWrite
	if !known || h.size == 0 || h.size > whole || offset > whole-h.size {
		return nil, false
	}
	return t.mem[offset : offset+h.size], true
}

// session is the serving end of one connection. Answers are held back while there is input to work on, and leave
// before the session waits for more.
type session struct {
	*target
	c        *conn
	bounce   []byte
	ahead    []byte // the part of bounce that has arrived and is not used yet
	statuses []byte // answers to writes: held back, copies of ok
	answers  []unix.Iovec
	ok       []byte
	in       [2]unix.Iovec
	out      [1]unix.Iovec
}

func newSession(t *target, c *conn) *session {
	return &session{
		target:   t,
		c:        c,
		bounce:   make([]byte, bounceBytes),
		statuses: make([]byte, 0, maxStatuses*statusBytes),
		answers:  make([]unix.Iovec, 0, maxAnswers),
		ok:       statusFrame(statusOK),
	}
}

// run serves until the peer hangs up, or names something it may not have.
func (s *session) run() error {
	for {
		h, err := s.nextHeader()
		if err != nil {
			return err
		}
		memory, ok := s.at(h)
		if !ok {
			return s.reject()
		}
		if h.op == opWrite {
			err = s.write(memory)
		} else {
			err = s.read(memory)
		}
		if err != nil {
			return err
		}
	}
}

func (s *session) nextHeader() (header, error) {
	for len(s.ahead) < headerBytes {
		if err := s.flush(); err != nil {
			return header{}, err
		}
		have := copy(s.bounce, s.ahead)
		s.in[0] = entry(s.bounce[have:])
		n, err := s.c.readSome(s.in[:1])
		if err != nil {
			return header{}, err
		}
		s.ahead = s.bounce[:have+n]
	}
	h := parseHeader(s.ahead)
	s.ahead = s.ahead[headerBytes:]
	return h, nil
}

// write takes what has arrived already from the bounce buffer, and has the kernel put the rest in place. The bounce
// buffer is the second entry of that call, so that the next header comes with the end of the payload.
func (s *session) write(memory []byte) error {
	if len(s.answers) > 0 { // they point at memory that this write may change
		if err := s.flush(); err != nil {
			return err
		}
	}
	n := copy(memory, s.ahead)
	s.ahead = s.ahead[n:]
	for memory = memory[n:]; len(memory) > 0; {
		s.in[0], s.in[1] = entry(memory), entry(s.bounce)
		n, err := s.c.readSome(s.in[:])
		if err != nil {
			return err
		}
		if n > len(memory) {
			s.ahead = s.bounce[:n-len(memory)]
			n = len(memory)
		}
		memory = memory[n:]
	}
	s.statuses = append(s.statuses, s.ok...)
	if len(s.statuses) == cap(s.statuses) {
		return s.flush()
	}
	return nil
}

func (s *session) read(memory []byte) error {
	if len(s.statuses) > 0 { // answers leave in the order of the requests
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.answers = append(s.answers, entry(s.ok), entry(memory))
	if len(s.answers) == cap(s.answers) {
		return s.flush()
	}
	return nil
}

// flush sends what is held back: statuses or answers, never both.
func (s *session) flush() error {
	if len(s.answers) > 0 {
		err := s.c.writeAll(s.answers)
		s.answers = s.answers[:0]
		return err
	}
	if len(s.statuses) > 0 {
		s.out[0] = entry(s.statuses)
		s.statuses = s.statuses[:0]
		return s.c.writeAll(s.out[:])
	}
	return nil
}

// reject answers a request that the session cannot serve, after everything before it.
func (s *session) reject() error {
	if err := s.flush(); err != nil {
		return err
	}
	s.out[0] = entry(statusFrame(statusRejected))
	return s.c.writeAll(s.out[:])
}
