package tcp

//moonpath:goroutines

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/moonpath-io/moonpath/xfer"
)

// acceptor owns the data port and the sessions of its connections.
type acceptor struct {
	t        *Transport
	port     int
	listener *net.TCPListener
	running  sync.WaitGroup

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
	a := &acceptor{t: t, listener: l, port: l.Addr().(*net.TCPAddr).Port, sessions: make(map[*session]struct{})}
	a.running.Go(a.run)
	return a, nil
}

// listenConfig leaves keep-alive to tune, which every connection gets.
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

func (a *acceptor) run() {
	for {
		c, err := a.listener.AcceptTCP()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of descriptors, most likely: existing connections go on, new ones get their turn.
			a.t.log.Warn("data connection not accepted", "error", err)
			time.Sleep(acceptPause)
			continue
		}
		a.admit(c)
	}
}

// acceptPause keeps a failing accept from spinning.
const acceptPause = 50 * time.Millisecond

// admit starts a session, or refuses the connection when too many are served. An idle one is never closed
// in its place: published initiators would lose a request for it (wire spec, section 4.7).
func (a *acceptor) admit(c *net.TCPConn) {
	s, err := newSession(a.t, c)
	if err != nil {
		c.Close()
		return
	}
	a.mu.Lock()
	full := a.closing || len(a.sessions) >= a.t.opt.inbound
	if !full {
		a.sessions[s] = struct{}{}
		a.running.Add(1)
	}
	a.mu.Unlock()
	if full {
		a.t.count.turnedAway.Add(1)
		reset(c)
		return
	}
	a.t.count.sessions.Add(1)
	go func() {
		defer a.running.Done()
		s.run()
		a.mu.Lock()
		delete(a.sessions, s)
		a.mu.Unlock()
	}()
}

// close ends all sessions at the border of an exchange; those that are in the middle of one when ctx ends
// are reset.
func (a *acceptor) close(ctx context.Context) {
	a.listener.Close()
	for _, s := range a.closeAll() {
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
			reset(s.conn)
		}
		<-done
	}
}

func (a *acceptor) closeAll() []*session {
	a.mu.Lock()
	a.closing = true
	a.mu.Unlock()
	return a.all()
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
