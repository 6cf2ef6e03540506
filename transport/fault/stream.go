package fault

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"time"
)

// stream is one direction of a connection.
type stream struct {
	*connection
	direction Direction
	from, to  *net.TCPConn
	rules     []misfortune // that are still to come
	at        uint64       // bytes read
	buffer    [2 * maxSpan]byte
}

// misfortune is a rule that picked this connection.
type misfortune struct {
	StreamRule
	random *rand.Rand
}

// Why a stream is over without an error of a socket.
var (
	errGone  = errors.New("the connection has ended")
	errSwept = errors.New("the rest is discarded")
)

// run forwards until the end. An end in order is passed on, and leaves the other direction alone; a reset ends both.
func (s *stream) run() {
	err := s.forward()
	switch {
	case errors.Is(err, io.EOF):
		_ = s.to.CloseWrite() // may be gone already
	case errors.Is(err, errSwept):
		s.discard()
	default:
		s.end(true)
	}
}

// forward moves bytes up to the place of the next rule, lets it act, and goes on.
func (s *stream) forward() error {
	for {
		for len(s.rules) > 0 && s.rules[0].At <= s.at {
			r := s.rules[0]
			s.rules = s.rules[1:]
			if err := s.act(&r); err != nil {
				return err
			}
		}
		room := uint64(len(s.buffer))
		if len(s.rules) > 0 {
			room = min(room, s.rules[0].At-s.at)
		}
		n, err := s.read(s.buffer[:room])
		if sent := s.write(s.buffer[:n]); sent != nil {
			return sent
		}
		if err != nil {
			return err
		}
	}
}

func (s *stream) read(b []byte) (int, error) {
	if !s.proxy.pass(s.gone) {
		return 0, errGone
	}
	n, err := s.from.Read(b)
	s.at += uint64(n)
	s.proxy.bytes[s.direction].Add(uint64(n))
	return n, err
}

// readFull is as long as b unless the stream ends.
func (s *stream) readFull(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var some int
		some, err = s.read(b[n:])
		n += some
	}
	return n, err
}

func (s *stream) write(b []byte) error {
	switch {
	case !s.proxy.pass(s.gone):
		return errGone
	case s.swept.Load():
		return errSwept
	case len(b) == 0:
		return nil
	}
	_, err := s.to.Write(b)
	if err != nil && s.swept.Load() {
		return errSwept
	}
	return err
}

// act does what a rule says at this place.
func (s *stream) act(r *misfortune) error {
	switch r.Do {
	case Drop:
		return s.drop(r.Bytes)
	case Delay:
		timer := time.NewTimer(r.Delay)
		defer timer.Stop()
		return s.until(timer.C)
	case Stall:
		select {
		case <-s.proxy.resumed():
			return nil
		case <-s.gone:
			return errGone
		}
	case HalfClose:
		_ = s.to.CloseWrite()
		return errSwept
	case Finish:
		s.finish()
		return errSwept
	case Reset:
		return errGone
	}
	return s.change(r)
}

func (s *stream) until(c <-chan time.Time) error {
	select {
	case <-c:
		return nil
	case <-s.gone:
		return errGone
	}
}

// drop discards n bytes, or all that comes if n is 0.
func (s *stream) drop(n int) error {
	if n == 0 {
		return s.discardAll()
	}
	for n > 0 {
		some, err := s.read(s.buffer[:min(n, len(s.buffer))])
		if err != nil {
			return err
		}
		n -= some
	}
	return nil
}

// discardAll is the black hole: not even the end of the stream or a reset comes out of it.
func (s *stream) discardAll() error {
	for {
		if _, err := s.read(s.buffer[:]); err != nil {
			<-s.gone
			return errGone
		}
	}
}

// discard reads to the end, for a stream whose receiver has been told that it is over.
func (s *stream) discard() {
	for {
		if _, err := s.read(s.buffer[:]); err != nil {
			if !errors.Is(err, io.EOF) {
				s.end(true)
			}
			return
		}
	}
}

// change sends some bytes twice, in another order or changed. If the stream ends before there are as many, those that
// are there go through as they are.
func (s *stream) change(r *misfortune) error {
	n := max(r.Bytes, 1)
	b := s.buffer[:n]
	if r.Do == Reorder {
		b = s.buffer[:2*n]
	}
	got, err := s.readFull(b)
	if err != nil {
		if sent := s.write(b[:got]); sent != nil {
			return sent
		}
		return err
	}
	parts := [][]byte{b}
	switch r.Do {
	case Duplicate:
		parts = [][]byte{b, b}
	case Reorder:
		parts = [][]byte{b[n:], b[:n]}
	case Corrupt:
		for i := range b {
			b[i] ^= byte(1 + r.random.IntN(255))
		}
	}
	for _, part := range parts {
		if err := s.write(part); err != nil {
			return err
		}
	}
	return nil
}
