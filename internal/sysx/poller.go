package sysx

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Poller waits for many descriptors in one goroutine, which parks in the runtime's own poller meanwhile. It spares
// what is served at once the cost of being known to the runtime, and of a goroutine. Only Close may be called from
// another goroutine than the others.
type Poller struct {
	fd     int // of the epoll instance; file owns it
	file   *os.File
	raw    syscall.RawConn
	events [64]unix.EpollEvent
	n      int
	errno  syscall.Errno
	gather func(fd uintptr) bool
}

// NewPoller returns a poller that waits for nothing yet.
func NewPoller() (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // or the runtime would not poll it
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	p := &Poller{fd: fd, file: os.NewFile(uintptr(fd), "epoll")}
	if p.raw, err = p.file.SyscallConn(); err != nil {
		p.file.Close()
		return nil, err
	}
	p.gather = func(fd uintptr) bool {
		n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), 0, 0, 0)
		p.n, p.errno = int(n), errno
		if errno != 0 {
			p.n = 0
			return errno != unix.EINTR
		}
		return n > 0
	}
	return p, nil
}

// Add makes Wait return fd while there is something to read, or its end. Whoever closes fd need not remove it.
func (p *Poller) Add(fd int) error { return p.control(unix.EPOLL_CTL_ADD, fd) }

// Remove undoes Add.
func (p *Poller) Remove(fd int) error { return p.control(unix.EPOLL_CTL_DEL, fd) }

func (p *Poller) control(op, fd int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP, Fd: int32(fd)}
	_, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(p.fd), uintptr(op), uintptr(fd), uintptr(unsafe.Pointer(&event)), 0, 0)
	if errno != 0 {
		return os.NewSyscallError("epoll_ctl", errno)
	}
	return nil
}

// Wait appends the descriptors that are ready to dst[:0], parking until there is one. After Close the error is
// os.ErrClosed.
func (p *Poller) Wait(dst []int) ([]int, error) {
	dst = dst[:0]
	if p.raw.Read(p.gather) != nil {
		return dst, os.ErrClosed // nothing else can end it
	}
	if p.errno != 0 {
		return dst, os.NewSyscallError("epoll_pwait", p.errno)
	}
	for i := range p.events[:p.n] {
		dst = append(dst, int(p.events[i].Fd))
	}
	return dst, nil
}

// Close ends Wait. The descriptors that were added stay open.
func (p *Poller) Close() error { return p.file.Close() }
