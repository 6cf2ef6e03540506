package transcript

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// stepTimeout bounds every wait for the live side: an answer that a test has to wait for longer is a wrong one.
const stepTimeout = 10 * time.Second

// maxFrame bounds what a control frame's length field can make a player allocate.
const maxFrame = 1 << 20

// Player plays one side of a transcript against a live other side, step by step in the recorded order.
type Player struct {
	// Role is the side that is played.
	Role Role
	// Bindings are the values of the symbols in this run.
	Bindings Bindings
	// Connect gives the next connection on that port: dialled by an initiator, accepted by a target.
	Connect func(Port) (net.Conn, error)
	// Frame, if not nil, is given each control frame of the live side, whole and whatever its length, with the recorded
	// one, and returns what is compared in its place: the frame without what its receiver ignores.
	Frame func(recorded, got []byte) []byte
}

// Play plays all events of t. The first step at which the live side does not do what was recorded gives a *Mismatch. An end
// of a connection may arrive as eof where reset was recorded, and the other way round. On return all connections are closed.
func (p *Player) Play(t *Transcript) error {
	var open []*playedConn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for n, e := range t.Events {
		if e.Kind == Opened {
			c, err := p.Connect(e.Port)
			if err != nil {
				return &Mismatch{Event: n, Conn: e.Conn, From: Initiator, Problem: "no connection to the " + string(e.Port) + " port", Cause: err}
			}
			open = append(open, &playedConn{Conn: c, port: e.Port})
			continue
		}
		if err := p.step(open[e.Conn-1], n, e); err != nil {
			return err
		}
	}
	return nil
}

type playedConn struct {
	net.Conn
	port Port
}

func (p *Player) step(c *playedConn, n int, e Event) error {
	// An error shows in the read or write that follows.
	_ = c.SetDeadline(time.Now().Add(stepTimeout))
	mismatch := func(problem string, cause error) error {
		return &Mismatch{Event: n, Conn: e.Conn, From: e.From, Problem: problem, Cause: cause}
	}
	switch {
	case e.Kind != Sent && e.From == p.Role:
		endSide(c.Conn, e.Kind)
		return nil
	case e.Kind != Sent:
		extra := make([]byte, 1)
		if got, err := c.Read(extra); got > 0 {
			return mismatch(fmt.Sprintf("the end of the connection, got byte %#02x", extra[0]), nil)
		} else if !isEnd(err) {
			return mismatch("the end of the connection", err)
		}
		return nil
	}
	want, err := e.Message.Bytes(p.Bindings)
	if err != nil {
		return err
	}
	if e.From == p.Role {
		if _, err := c.Write(want); err != nil {
			return mismatch(fmt.Sprintf("that it takes %d bytes", len(want)), err)
		}
		return nil
	}
	got, err := p.receive(c, want)
	if err != nil {
		return mismatch(fmt.Sprintf("%d bytes, got %d", len(want), len(got)), err)
	}
	if want, err = e.Message.Like(got, p.Bindings); err != nil {
		return err
	}
	if len(got) != len(want) {
		return mismatch(fmt.Sprintf("%d bytes, %q, got %d, %q", len(want), want, len(got), got), nil)
	}
	if at := firstDifference(want, got); at >= 0 {
		return mismatch(fmt.Sprintf("byte %d of %d to be %#02x, got %#02x", at, len(want), want[at], got[at]), nil)
	}
	return nil
}

// endSide ends the player's side of a connection, which a later step may still read from.
func endSide(c net.Conn, k Kind) {
	tcp, ok := c.(*net.TCPConn)
	switch {
	case !ok:
		_ = c.Close()
	case k == Reset:
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	default:
		_ = tcp.CloseWrite() // fails where the other side has ended everything already
	}
}

func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
}

// receive reads as many bytes as are wanted or, where there is a Frame, a whole control frame.
func (p *Player) receive(c *playedConn, want []byte) ([]byte, error) {
	if p.Frame == nil || c.port == Data {
		got := make([]byte, len(want))
		n, err := io.ReadFull(c, got)
		return got[:n], err
	}
	head := make([]byte, 8)
	if n, err := io.ReadFull(c, head); err != nil {
		return head[:n], err
	}
	size := binary.LittleEndian.Uint64(head)
	if size > maxFrame {
		return head, fmt.Errorf("frame of %d bytes, want at most %d", size, maxFrame)
	}
	frame := append(head, make([]byte, size)...)
	if n, err := io.ReadFull(c, frame[8:]); err != nil {
		return frame[:8+n], err
	}
	return p.Frame(want, frame), nil
}

func firstDifference(want, got []byte) int {
	if bytes.Equal(want, got) {
		return -1
	}
	for i := range want {
		if want[i] != got[i] {
			return i
		}
	}
	return -1
}
