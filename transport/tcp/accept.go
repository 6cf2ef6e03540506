package tcp

//moonpath:goroutines

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/internal/sysx"
	"github.com/moonpath-io/moonpath/xfer"
)

// acceptor owns the data port and the sessions of its connections. One goroutine accepts, and serves small
// requests that come one at a time (front.go); every other connection has a goroutine of its own.
type acceptor struct {
	t       *Transport
	port    int
	poller  *sysx.Poller
	running sync.WaitGroup
	front   front

	mu       sync.Mutex
	sessions map[*session]struct{}
	closing  bool
}

// bindTries is how many random ports are tried, as in the published engine (wire spec, section 3.1).
const bindTries = 500

// listen binds before anything is published, so that no two engines can own the same port.
func listen(t *Transport) (*acceptor, error) {
	l, err := bind(t.env.Bind, t.env.Port, t.opt.lowPort, t.opt.highPort)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	a := &acceptor{t: t, port: l.Addr().(*net.TCPAddr).Port, sessions: make(map[*session]struct{})}
	if err := a.open(l); err != nil {
		return nil, &xfer.Fault{Code: xfer.Socket, Stage: xfer.StageDial, Path: Name, Cause: err, Detail: "cannot wait for data connections",
			Next: "raise the limit of open files (ulimit -n)"}
	}
	a.running.Go(a.front.run)
	return a, nil
}

// open takes the socket of l over from the runtime.
func (a *acceptor) open(l *net.TCPListener) error {
	prepare(l)
	file, err := l.File()
	if err != nil {
		return err
	}
	if a.poller, err = sysx.NewPoller(); err != nil {
		file.Close()
		return err
	}
	a.front = front{a: a, listener: file, fresh: make(map[int]*session), ended: make(chan struct{})}
	if err = a.front.watchListener(); err != nil {
		file.Close()
		a.poller.Close()
	}
	return err
}

// prepare sets what accepted connections inherit.
func prepare(l *net.TCPListener) {
	raw, err := l.SyscallConn()
	if err != nil {
		return // they work without
	}
	_ = raw.Control(func(fd uintptr) {
		_ = sysx.SetOption(int(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		setLiveness(int(fd))
		if l.Addr().(*net.TCPAddr).IP.IsLoopback() {
			_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, unpaced)
		}
		// Peers speak first: a connection is of interest when there is something to read. One that stays
		// silent is accepted after a second.
		_ = sysx.SetOption(int(fd), unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 1)
	})
}

// listenConfig leaves keep-alive to setLiveness.
var listenConfig = net.ListenConfig{KeepAlive: -1}

func bind(host string, port, low, high int) (*net.TCPListener, error) {
	tries := 1
	if port == 0 {
		tries = bindTries
	}
	var last error
	for range tries {
		p := port
		if p == 0 {
			p = low + rand.IntN(high-low+1)
		}
		l, err := listenConfig.Listen(context.Background(), "tcp", address(host, p))
		if err == nil {
			return l.(*net.TCPListener), nil
		}
		last = err
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, &xfer.Fault{Code: xfer.Socket, Stage: xfer.StageDial, Path: Name, Cause: last, Detail: "cannot bind the data port",
		Next: "choose a free port, or a wider range with port.min and port.max; the host must be an address of this machine"}
}

// admit takes a session into the list, unless too many are served. An idle one is never closed in its place:
// published initiators would lose a request for it (wire spec, section 4.7).
func (a *acceptor) admit(s *session) bool {
	a.mu.Lock()
	full := a.closing || len(a.sessions) >= a.t.opt.inbound
	if !full {
		a.sessions[s] = struct{}{}
	}
	a.mu.Unlock()
	if full {
		a.t.count.turnedAway.Add(1)
	} else {
		a.t.count.sessions.Add(1)
	}
	return !full
}

func (a *acceptor) forget(s *session) {
	a.mu.Lock()
	delete(a.sessions, s)
	a.mu.Unlock()
}

// serve runs a session in a goroutine of its own.
func (a *acceptor) serve(s *session) {
	a.running.Go(func() {
		s.run()
		a.forget(s)
	})
}

// close ends all sessions at the border of an exchange; those that are in the middle of one when ctx ends
// are reset.
func (a *acceptor) close(ctx context.Context) {
	a.mu.Lock()
	a.closing = true
	a.mu.Unlock()
	a.poller.Close()
	<-a.front.ended
	for _, s := range a.all() {
		s.finish()
	}
	done := make(chan struct{})
	go func() {
		a.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		for _, s := range a.all() {
			s.cut()
		}
		<-done
	}
}

func (a *acceptor) all() []*session {
	a.mu.Lock()
	defer a.mu.Unlock()
	ss := make([]*session, 0, len(a.sessions))
	for s := range a.sessions {
		ss = append(ss, s)
	}
	return ss
}

// reset closes a connection without delivering what the kernel still holds: after a plain close it would go
// on and write into a peer that wakes up later.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0) // fails on a connection that is closed already
	c.Close()
}
