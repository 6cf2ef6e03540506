package sysx

import (
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Stream makes vectored calls on one TCP connection. One goroutine at a time may read and one may write;
// both may happen at once. Closing the connection ends calls that wait with net.ErrClosed.
type Stream struct {
	raw   syscall.RawConn
	read  call
	write call
	bulk  atomic.Bool
}

// SetBulk says whether what the stream moves now is bulk: then large calls take turns while small requests are
// about. Batches of small requests make large calls, too, and take none. It may be called by any goroutine.
func (s *Stream) SetBulk(bulk bool) {
	if s.bulk.Load() != bulk {
		s.bulk.Store(bulk)
	}
}

// Flow decides anew before each attempt what is moved, and takes note of what was. Between an attempt that
// found the socket not ready and the next one the call is parked and no memory of the vector is touched.
type Flow interface {
	// Vectors returns what the attempt is to move; nothing ends the call.
	Vectors() []unix.Iovec
	// Moved follows every Vectors, with the number of bytes; 0 if the socket was not ready or failed.
	Moved(n int)
}

// call is the state that the poller's closures work on, so that no closure is made per call.
type call struct {
	bulk  *atomic.Bool
	flow  Flow
	vs    []unix.Iovec // where there is no flow
	n     int
	errno syscall.Errno
	try   func(fd uintptr) bool // one attempt
	wait  func(fd uintptr) bool // until something has moved
}

// NewStream returns a stream over c, which stays the caller's to close. in and out are used by ReadFlow and
// WriteFlow; a nil flow means that those are not called.
func NewStream(c *net.TCPConn, in, out Flow) (*Stream, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &Stream{raw: raw}
	s.read.bind(unix.SYS_READV, in, &s.bulk)
	s.write.bind(unix.SYS_WRITEV, out, &s.bulk)
	return s, nil
}

func (c *call) bind(trap uintptr, flow Flow, bulk *atomic.Bool) {
	c.flow, c.bulk = flow, bulk
	c.try = func(fd uintptr) bool {
		c.attempt(trap, fd)
		return true
	}
	// The poller forgets an earlier readiness before it calls; so every call has to be a real attempt, or
	// a wake-up could be lost.
	c.wait = func(fd uintptr) bool {
		c.attempt(trap, fd)
		return c.errno != unix.EAGAIN
	}
}

func (c *call) attempt(trap, fd uintptr) {
	if c.flow == nil {
		c.n, c.errno = c.vectored(trap, fd, c.vs)
		return
	}
	if vs := c.flow.Vectors(); len(vs) > 0 {
		c.n, c.errno = c.vectored(trap, fd, vs)
	} else {
		c.n, c.errno = 0, nothing
	}
	c.flow.Moved(c.n)
}

// nothing stands for an attempt that had nothing to move; the kernel has no such number.
const nothing = syscall.Errno(0xffff)

// smallCall is the number of bytes up to which a call is made without telling the scheduler: it takes a few
// microseconds. A longer one, which may also meet page faults, must not hold up a stop of the world.
const smallCall = 80 << 10

func (c *call) vectored(trap, fd uintptr, vs []unix.Iovec) (int, syscall.Errno) {
	total := uint64(0)
	for i := range vs {
		total += vs[i].Len
	}
	small := total <= smallCall
	if !small && c.bulk.Load() && hurrying.Load() {
		turns <- struct{}{}
		defer func() { <-turns }()
	}
	for {
		var n uintptr
		var e syscall.Errno
		if small {
			n, _, e = syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(vs))), uintptr(len(vs)))
		} else {
			n, _, e = syscall.Syscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(vs))), uintptr(len(vs)))
		}
		switch e {
		case 0:
			return int(n), 0
		case unix.EINTR:
		default:
			return 0, e
		}
	}
}

// result turns the last attempt into what the methods return.
func (c *call) result(err error, reading bool) (int, error) {
	c.vs = nil
	switch {
	case err != nil:
		return 0, err
	case c.errno == unix.EAGAIN || c.errno == nothing:
		return 0, nil
	case c.errno != 0:
		return 0, c.errno
	case c.n == 0 && reading:
		return 0, io.EOF
	}
	return c.n, nil
}

// TryWriteFlow makes one attempt; n 0 without an error means that the socket is full or the flow has nothing.
func (s *Stream) TryWriteFlow() (n int, err error) {
	return s.write.result(s.raw.Write(s.write.try), false)
}

// WriteFlow makes attempts until something has moved, parking while the socket is full; n 0 without an error
// means that the flow has nothing.
func (s *Stream) WriteFlow() (n int, err error) {
	return s.write.result(s.raw.Write(s.write.wait), false)
}

// ReadFlow makes attempts until something has moved, parking while nothing is there. The end of the stream
// is io.EOF.
func (s *Stream) ReadFlow() (n int, err error) {
	return s.read.result(s.raw.Read(s.read.wait), true)
}

// Read reads into vs, parking until something is there. The stream has no flow for reading.
func (s *Stream) Read(vs []unix.Iovec) (n int, err error) {
	s.read.vs = vs
	return s.read.result(s.raw.Read(s.read.wait), true)
}

// TryRead makes one attempt to read into vs; n 0 without an error means that nothing is there. The stream has
// no flow for reading.
func (s *Stream) TryRead(vs []unix.Iovec) (n int, err error) {
	s.read.vs = vs
	return s.read.result(s.raw.Read(s.read.try), true)
}

// WriteSome writes as much of vs as one call takes, parking while the socket is full. The stream has no flow
// for writing.
func (s *Stream) WriteSome(vs []unix.Iovec) (n int, err error) {
	s.write.vs = vs[:min(len(vs), MaxVectors)]
	return s.write.result(s.raw.Write(s.write.wait), false)
}

// Write writes all of vs, parking while the socket is full. vs is used up. The stream has no flow for writing.
func (s *Stream) Write(vs []unix.Iovec) error {
	for len(vs) > 0 {
		n, err := s.WriteSome(vs)
		if err != nil {
			return err
		}
		vs = Advance(vs, n)
	}
	return nil
}
