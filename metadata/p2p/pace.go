package p2p

import (
	"net"
	"time"
)

// paceUnit is how many bytes the peer may take one time limit for. Published engines send more than 1 MiB
// in a request when they have many buffers.
const paceUnit = 1 << 20

// pacedReader demands a minimum rate: each started paceUnit has to arrive within limit. A peer that
// trickles is cut like a silent one, while long messages get the time that they need.
type pacedReader struct {
	conn     net.Conn
	limit    time.Duration
	left     int // of the current paceUnit
	deadline time.Time
}

func (p *pacedReader) Read(b []byte) (int, error) {
	if p.left == 0 {
		p.left = paceUnit
		if err := p.setDeadline(time.Now().Add(p.limit)); err != nil {
			return 0, err
		}
	}
	got, err := p.conn.Read(b[:min(len(b), p.left)])
	p.left -= got
	return got, err
}

func (p *pacedReader) setDeadline(t time.Time) error {
	p.deadline = t
	return p.conn.SetReadDeadline(t)
}

// pacedWrite sends b in one write, with the time that the same rate allows.
func pacedWrite(conn net.Conn, b []byte, limit time.Duration) (int, error) {
	units := 1 + len(b)/paceUnit
	if err := conn.SetWriteDeadline(time.Now().Add(time.Duration(units) * limit)); err != nil {
		return 0, err
	}
	return conn.Write(b)
}
