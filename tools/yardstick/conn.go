package main

import (
	"fmt"
	"io"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxVector is the number of vector entries the kernel takes in one call (IOV_MAX).
const maxVector = 1024

// conn does vectored I/O on a non-blocking socket and parks in the runtime's poller. Its two directions are independent
// of each other; each is used by one goroutine at a time.
type conn struct {
	net.Conn
	raw     syscall.RawConn
	in, out direction
}

func newConn(c *net.TCPConn) (*conn, error) {
	if err := c.SetNoDelay(true); err != nil {
		return nil, err
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	v := &conn{Conn: c, raw: raw}
	v.in.init(unix.SYS_READV)
	v.out.init(unix.SYS_WRITEV)
	return v, nil
}

// direction is one system call with its operands and its result.
type direction struct {
	vector []unix.Iovec
	n      int
	errno  unix.Errno
	try    func(fd uintptr) bool // made once: made per call, it would be an allocation per call
}

// init makes a call that does not tell the scheduler: it never blocks, and the hand-over costs as much as a small call.
func (d *direction) init(call uintptr) {
	d.try = func(fd uintptr) bool {
		for {
			n, _, errno := unix.RawSyscall(call, fd, uintptr(unsafe.Pointer(&d.vector[0])), uintptr(len(d.vector)))
			switch errno {
			case unix.EINTR:
				continue
			case unix.EAGAIN:
				return false
			}
			d.n, d.errno = int(n), errno
			return true
		}
	}
}

// readSome fills the front of vector with at least one byte.
func (c *conn) readSome(vector []unix.Iovec) (int, error) {
	c.in.vector = vector[:min(len(vector), maxVector)]
	if err := c.raw.Read(c.in.try); err != nil {
		return 0, err
	}
	switch {
	case c.in.errno != 0:
		return 0, fmt.Errorf("readv: %w", c.in.errno)
	case c.in.n == 0:
		return 0, io.EOF
	}
	return c.in.n, nil
}

// readAll fills vector and uses it up.
func (c *conn) readAll(vector []unix.Iovec) error {
	for len(vector) > 0 {
		n, err := c.readSome(vector)
		if err != nil {
			return err
		}
		vector = advance(vector, n)
	}
	return nil
}

// writeAll sends vector and uses it up.
func (c *conn) writeAll(vector []unix.Iovec) error {
	for len(vector) > 0 {
		c.out.vector = vector[:min(len(vector), maxVector)]
		if err := c.raw.Write(c.out.try); err != nil {
			return err
		}
		if c.out.errno != 0 {
			return fmt.Errorf("writev: %w", c.out.errno)
		}
		vector = advance(vector, c.out.n)
	}
	return nil
}

// advance drops the first n bytes of vector, in place.
func advance(vector []unix.Iovec, n int) []unix.Iovec {
	for n > 0 {
		first := &vector[0]
		if length := int(first.Len); n >= length {
			n -= length
			vector = vector[1:]
			continue
		}
		first.Base = (*byte)(unsafe.Add(unsafe.Pointer(first.Base), n))
		first.SetLen(int(first.Len) - n)
		return vector
	}
	return vector
}

// entry is the vector entry of b, which must not be empty.
func entry(b []byte) unix.Iovec {
	v := unix.Iovec{Base: &b[0]}
	v.SetLen(len(b))
	return v
}
