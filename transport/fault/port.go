package fault

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// port is one TCP port of 127.0.0.1 that keeps its number while nobody listens there: a socket that is bound and does
// not listen holds it.
type port struct {
	number int
	keeper int // file descriptor

	mu       sync.Mutex
	listens  net.Listener // nil while connections are refused or swallowed
	swallows []int        // file descriptors: a listener that nobody accepts from, and what fills its queue
	closed   bool
}

func openPort() (*port, error) {
	fd, err := bound(0)
	if err != nil {
		return nil, err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("getsockname", err)
	}
	p := &port{number: name.(*unix.SockaddrInet4).Port, keeper: fd}
	if p.listens, err = p.listen(); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return p, nil
}

// bound returns a socket that shares its port with others of this package.
func bound(number int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if err := share(fd); err != nil {
		unix.Close(fd)
		return -1, err
	}
	if err := unix.Bind(fd, loopback(number)); err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("bind", err)
	}
	return fd, nil
}

func loopback(number int) *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}}
}

func share(fd int) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
}

func (p *port) listen() (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		if err := raw.Control(func(fd uintptr) { failed = share(int(fd)) }); err != nil {
			return err
		}
		return failed
	}}
	return config.Listen(context.Background(), "tcp4", fmt.Sprintf("127.0.0.1:%d", p.number))
}

func (p *port) listener() net.Listener {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listens
}

// refuse closes the listener; the kernel answers with a reset.
func (p *port) refuse() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.silence()
}

// silence ends listening of either kind; p.mu is held.
func (p *port) silence() error {
	for _, fd := range p.swallows {
		unix.Close(fd)
	}
	p.swallows = nil
	l := p.listens
	p.listens = nil
	if l == nil {
		return nil
	}
	return l.Close()
}

// maxFillers is how many connections are tried to fill the shortest queue that a kernel makes.
const maxFillers = 16

// swallow listens with the shortest queue and fills it: the kernel ignores SYNs for which it has no room.
func (p *port) swallow() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return net.ErrClosed
	}
	if err := p.silence(); err != nil {
		return err
	}
	fd, err := bound(p.number)
	if err != nil {
		return err
	}
	p.swallows = append(p.swallows, fd)
	if err := unix.Listen(fd, 0); err != nil {
		return os.NewSyscallError("listen", err)
	}
	for range maxFillers {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return os.NewSyscallError("socket", err)
		}
		p.swallows = append(p.swallows, fd)
		// Over loopback the whole handshake is done within the call, if it is done at all.
		if err := unix.Connect(fd, loopback(p.number)); err != nil && err != unix.EINPROGRESS {
			return os.NewSyscallError("connect", err)
		}
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if n, err := unix.Poll(ready, 50); err == nil && n == 0 {
			return nil
		}
	}
	return fmt.Errorf("fault: port %d still answers after %d connections that nobody accepted", p.number, maxFillers)
}

// accept listens again; it returns the listener if it is a new one.
func (p *port) accept() (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, net.ErrClosed
	}
	if p.listens != nil {
		return nil, nil
	}
	if err := p.silence(); err != nil {
		return nil, err
	}
	l, err := p.listen()
	p.listens = l
	return l, err
}

func (p *port) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	err := p.silence()
	unix.Close(p.keeper)
	return err
}
