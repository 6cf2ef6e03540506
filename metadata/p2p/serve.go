package p2p

//moonpath:goroutines

import (
	"errors"
	"io"
	"net"
	"time"
)

const (
	// patience is how long the port waits for its peer: for each MiB of a request or a reply, and for the
	// peer to close. Peers are promised an end within 2 s; the rest is room for a busy machine.
	patience = 1500 * time.Millisecond
	// acceptPause is the wait after a failure to accept, such as a lack of file descriptors.
	acceptPause = 50 * time.Millisecond
)

// start runs the accept loop.
func (n *Node) start() {
	n.served.Go(n.accept)
}

func (n *Node) accept() {
	for {
		conn, err := n.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			n.options.Log.Warn("control port: cannot accept", "error", err, "retry_in", acceptPause)
			n.pause(acceptPause)
			continue
		}
		s := &session{conn: conn}
		if !n.slots.enter(s) {
			conn.Close()
			return
		}
		n.served.Go(func() { n.serve(s) })
	}
}

// pause waits, but not beyond the node's life.
func (n *Node) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-n.life.Done():
	}
}

// serve answers the one request of a connection that has entered.
func (n *Node) serve(s *session) {
	defer n.slots.leave(s)
	r := &requestReader{pacedReader: pacedReader{conn: s.conn, limit: patience}, slots: n.slots, session: s}
	request, err := readRequest(r, n.options.MaxFrame)
	if !n.slots.work(s) {
		return
	}
	if err != nil {
		n.counters.reject(err)
		n.logRefusal(s.conn, err)
		return
	}
	reply, err := n.answer(request)
	if err != nil {
		n.counters.unanswerable.Add(1)
		n.logRefusal(s.conn, err)
		return
	}
	if _, err := pacedWrite(s.conn, reply, patience); err != nil {
		n.options.Log.Debug("control port: reply not taken", "peer", s.conn.RemoteAddr(), "error", err)
		return
	}
	if n.slots.rest(s) {
		awaitEnd(s.conn)
	}
}

func (n *Node) logRefusal(conn net.Conn, err error) {
	n.options.Log.Debug("control port: connection refused", "peer", conn.RemoteAddr(), "error", err)
}

// awaitEnd ends the reply and waits for the peer to close: closing first, with input unread, would make
// the kernel throw the reply away.
func awaitEnd(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() != nil {
		return
	}
	if conn.SetReadDeadline(time.Now().Add(patience)) == nil {
		io.Copy(io.Discard, conn)
	}
}
