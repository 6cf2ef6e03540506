package sysx

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Accept takes one connection from the listening socket fd, which must not block. It is unix.EAGAIN if there
// is none. Whoever gets the descriptor closes it, by CloseSocket or through Adopt.
func Accept(fd int) (int, error) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), 0, 0, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

// SetOption sets an option of a socket that is a number.
func SetOption(fd, level, option, value int) error {
	v := int32(value)
	_, _, errno := syscall.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option), uintptr(unsafe.Pointer(&v)), unsafe.Sizeof(v), 0)
	if errno != 0 {
		return os.NewSyscallError("setsockopt", errno)
	}
	return nil
}

// CloseSocket closes a descriptor that the runtime does not know.
func CloseSocket(fd int) { _, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

// Adopt makes a connection of fd and closes fd, in any case.
func Adopt(fd int) (*net.TCPConn, error) {
	f := os.NewFile(uintptr(fd), "tcp")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// PeerAddress returns the address of the other end in words, for messages.
func PeerAddress(fd int) string {
	sa, err := unix.Getpeername(fd)
	if err != nil {
		return "gone"
	}
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)).String()
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port)).String()
	}
	return "unknown"
}

// bare gives access to a descriptor that the runtime does not know. What would have to wait fails.
type bare int

func (b bare) Control(f func(fd uintptr)) error { f(uintptr(b)); return nil }

func (b bare) Read(f func(fd uintptr) bool) error {
	if !f(uintptr(b)) {
		return unix.EAGAIN
	}
	return nil
}

func (b bare) Write(f func(fd uintptr) bool) error { return b.Read(f) }

// NewBareStream returns a stream over a socket that must not block; where another stream parks, it fails with
// unix.EAGAIN.
func NewBareStream(fd int) *Stream {
	s := &Stream{raw: bare(fd)}
	s.read.bind(unix.SYS_READV, nil, &s.bulk)
	s.write.bind(unix.SYS_WRITEV, nil, &s.bulk)
	return s
}
