package p2p

//moonpath:goroutines

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/moonpath-io/moonpath/wire/ctrlframe"
)

const (
	// maxConnections is how many connections are served at a time.
	maxConnections = 64
	// patience is how long the port waits for its peer: for each MiB of a request or a reply, and for the
	// peer to close. Peers are promised an end within 2 s; the rest is room for a busy machine.
	patience = 1750 * time.Millisecond
	// acceptPause is the wait after a failure to accept, such as a lack of file descriptors.
	acceptPause = 50 * time.Millisecond
)

// start runs the accept loop.
func (n *Node) start() {
	n.served.Add(1)
	go n.accept()
}

func (n *Node) accept() {
	defer n.served.Done()
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
		n.served.Add(1)
		go func() {
			defer n.served.Done()
			n.serve(s)
		}()
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

// serve answers the one request of a connection, which has a slot.
func (n *Node) serve(s *session) {
	defer n.slots.leave(s)
	request, err := readRequest(&pacedReader{conn: s.conn, limit: patience}, n.options.MaxFrame)
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
	if n.slots.wait(s) {
		awaitEnd(s.conn)
	}
}

func (n *Node) logRefusal(conn net.Conn, err error) {
	n.options.Log.Debug("control port: connection refused", "peer", conn.RemoteAddr(), "error", err)
}

// readRequest reads one frame. A metadata request may be larger than the limit, since published engines
// put their own description into it and do not look at its size; it is then skipped unread.
func readRequest(r io.Reader, limit uint64) (ctrlframe.Frame, error) {
	f, err := ctrlframe.Read(r, limit)
	var bad *ctrlframe.Error
	if !errors.As(err, &bad) || bad.Kind != ctrlframe.TooLong || bad.Length > ctrlframe.MaxLimit {
		return f, err
	}
	var first [1]byte
	if _, err := io.ReadFull(r, first[:]); err != nil {
		return f, &ctrlframe.Error{Kind: ctrlframe.Truncated, Length: bad.Length, Cause: err}
	}
	if ctrlframe.Type(first[0]) != ctrlframe.Metadata {
		return f, bad
	}
	skipped, err := io.CopyN(io.Discard, r, int64(bad.Length-1))
	if err != nil {
		return f, &ctrlframe.Error{Kind: ctrlframe.Truncated, Length: bad.Length, Got: 1 + uint64(skipped), Cause: err}
	}
	return ctrlframe.Frame{Type: ctrlframe.Metadata}, nil
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
