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
	conn  net.Conn
	limit time.Duration
	left  int // of the current paceUnit
}

func (p *pacedReader) Read(b []byte) (int, error) {
	if p.left == 0 {
		if err := p.conn.SetReadDeadline(time.Now().Add(p.limit)); err != nil {
			return 0, err
		}
		p.left = paceUnit
	}
	got, err := p.conn.Read(b[:min(len(b), p.left)])
	p.left -= got
	return got, err
}

// pacedWrite sends b in one write, with the time that the same rate allows.
func pacedWrite(conn net.Conn, b []byte, limit time.Duration) (int, error) {
	units := 1 + len(b)/paceUnit
	if err := conn.SetWriteDeadline(time.Now().Add(time.Duration(units) * limit)); err != nil {
		return 0, err
	}
	return conn.Write(b)
}
