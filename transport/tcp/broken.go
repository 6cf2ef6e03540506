package tcp

//moonpath:goroutines

import (
	"errors"
	"time"

	"github.com/moonpath-io/moonpath/internal/sysx"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// run is the life of a lane: wait for work, connect, take answers until the connection ends, settle what
// was under way, and again.
func (l *lane) run(given *link) {
	redial := false
	for {
		if given == nil {
			select {
			case <-l.wake:
			case <-l.r.ctx.Done():
				return
			}
			if redial && (!l.workWaits() || l.r.undecided()) {
				continue
			}
			k, err := l.r.dial(l.r.ctx)
			if err == nil && k.version != 2 {
				reset(k.conn)
				err = l.r.fault(xfer.BadProtocol, xfer.StageDial, "the peer speaks version 1 now; open the segment again", nil)
			}
			if err != nil {
				l.unreachable(err)
				continue
			}
			given = &k
		}
		if !l.connect(*given) {
			return
		}
		given = nil
		l.r.Kick() // what this lane leaves brings up the next
		l.broken(l.receive())
		redial = true
		if l.r.ctx.Err() != nil {
			return
		}
	}
}

// workWaits reports whether there is a reason to connect again.
func (l *lane) workWaits() bool {
	return l.r.source.Waiting()&l.wants() != 0 || l.r.resends()
}

// connect starts the lane on a new connection.
func (l *lane) connect(k link) bool {
	stream, err := sysx.NewStream(k.conn, receiver{l}, sender{l})
	if err != nil {
		l.unreachable(err)
		return true
	}
	l.lockPump()
	l.allocate()
	l.sendMu.Lock()
	closed := l.r.ctx.Err() != nil
	if !closed {
		l.link, l.conn, l.stream = k, k.conn, stream
		l.before = l.r.abandoned.Load()
		l.answers, l.broke, l.refused, l.early = 0, nil, false, false
		l.stalled.Store(false)
		l.unmapped.Store(false)
		l.hurry.Store(false)
	}
	l.sendMu.Unlock()
	l.failed.Store(false)
	l.up.Store(!closed)
	l.pumpMu.Unlock()
	if closed {
		k.conn.Close()
	}
	l.count.connects.Add(1)
	return !closed
}

// lockPump takes pumpMu even if its holder left it to a writer that has ended.
func (l *lane) lockPump() {
	for !l.pumpMu.TryLock() {
		select {
		case <-l.full:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// unreachable fails what waits for the route if no other lane is connected; else those do the work.
func (l *lane) unreachable(err error) {
	l.failed.Store(true)
	for _, other := range l.r.lanes {
		if other.up.Load() {
			l.r.Kick()
			return
		}
	}
	var f *xfer.Fault
	if !errors.As(err, &f) {
		f = l.r.fault(xfer.Socket, xfer.StageDial, "connection failed", err)
	}
	for _, other := range l.r.lanes {
		other.failed.Store(false) // the next request may try again at once
	}
	l.r.giveUp(f)
}

// broken settles the requests that were under way when the connection ended, by what is known about them.
//
//   - The peer refused the one at head (and closes, since it is no moonpath peer): that one fails. A server
//     works strictly in order, so those behind it were not executed: they are sent again.
//   - The peer ended the connection without a word, or a reset discarded it: it has let go of all of them,
//     and any of them may be the reason. They are sent again in a shrinking window (trial.go). A write may then
//     happen several times, with the same bytes at the same place, within its task.
//   - We ended it, because nothing moved: the peer may still execute what its socket holds. They fail, writes
//     with unknown remote state.
//
// What had not been sent is sent again in any case, unless connections keep ending without one answer.
func (l *lane) broken(err error) {
	// First, so that a writer who waits for the peer to read gives way.
	if l.broke != nil {
		reset(l.conn)
	} else {
		l.conn.Close()
	}
	l.lockPump()
	l.up.Store(false)
	l.r.lost.Store(true)
	l.r.moves.RLock()
	l.recvMu.Lock()
	l.sendMu.Lock()
	log := l.r.t.log
	busy := !l.idle()
	if busy {
		l.r.t.count.brokenLanes.Add(1)
		l.count.breaks.Add(1)
		log.Debug("lane broken", "peer", l.conn.RemoteAddr(), "lane", l.index, "unanswered", l.tail.Load()-l.head.Load(), "error", err)
	}
	var alone, again, left []work
	for i := l.head.Load(); i < l.tail.Load(); i++ {
		e := &l.ring[i%laneSlots]
		e.memory = nil
		if e.skip {
			continue
		}
		sent := i < l.sent.Load() || i == l.sent.Load() && l.sendOff > 0
		c := transport.Completion{Ref: e.work.chunk.Ref, Fault: l.failure(i, sent)}
		if refused := c.Fault != nil && c.Fault.Code == xfer.Refused; c.Fault != nil && (e.work.sent || sent && !refused) {
			if c.Remote = unknownIfWrite(&e.work.chunk); c.Remote == xfer.Unknown {
				l.r.doubt.Store(true)
			}
		}
		switch {
		case e.gone:
		case e.half && c.Fault == nil:
			c.Fault, c.Remote = l.r.interrupted(), unknownIfWrite(&e.work.chunk)
			l.done = append(l.done, c)
		case c.Fault != nil:
			l.done = append(l.done, c)
		case !sent && l.unmapped.Load(): // one of these cannot be sent; the kernel does not say which
			alone = append(alone, e.work)
		case l.refused || !sent:
			again = append(again, e.work)
		default:
			left = append(left, e.work)
		}
	}
	l.head.Store(0)
	l.sent.Store(0)
	l.tail.Store(0)
	l.bytes.Store(0)
	l.large.Store(0)
	l.sendOff, l.got = 0, 0
	l.trial = false
	if busy && len(left) <= minTrial {
		l.countFruitless()
	}
	hopeless := l.fruitless >= maxFruitless
	l.sendMu.Unlock()
	l.recvMu.Unlock()
	l.pumpMu.Unlock()
	if hopeless {
		l.fruitless = 0
	}

	l.r.again.put(again...)
	l.r.alone.put(alone...)
	judge := l.r.try(left) || len(alone) > 0
	l.r.moves.RUnlock()
	l.r.t.count.resent.Add(uint64(len(again) + len(alone) + len(left)))
	answered := l.refused && len(l.done) > 0
	fruitless := l.fruitless
	l.giveBack()
	if !answered {
		l.fruitless = fruitless // failing requests is no progress
	}
	if hopeless {
		l.r.giveUp(l.r.fault(xfer.Socket, xfer.StageSend, "the peer ends every connection without an answer", err))
		return
	}
	if judge {
		l.r.serial[0].rouse()
	}
	l.r.Kick()
}

// failure is the fault of the request at i if it ends with the connection, or nil if it is sent again.
func (l *lane) failure(i uint64, sent bool) *xfer.Fault {
	e := &l.ring[i%laneSlots]
	abandoned := l.r.abandonedSince(l.before)
	switch {
	case (l.refused || l.early) && i == l.head.Load():
		return refusal(l.r, &e.work.chunk, e.code)
	case l.r.ctx.Err() != nil:
		return l.r.fault(xfer.Closed, xfer.StageClose, "the path is closed", nil)
	case abandoned != nil:
		return abandoned
	case l.stalled.Load() && sent:
		return l.r.fault(xfer.Deadline, xfer.StageComplete, "no byte moved for "+l.r.t.opt.stall.String(), nil)
	case protocolError(l.broke) && sent:
		return l.r.fault(xfer.BadProtocol, xfer.StageComplete, "", l.broke)
	}
	return nil
}

// maxFruitless is how many connections of a lane in a row may end with requests under way while no byte comes on any
// connection of the route.
const maxFruitless = 3

func (l *lane) countFruitless() {
	if l.refused {
		return
	}
	if received := l.r.received.Load(); received != l.received {
		l.received, l.fruitless = received, 0
	}
	l.fruitless++
}

// undecided reports whether the serial connection has yet to find out which request made a lane's connection
// end. It kicks the lanes when it has.
func (r *route) undecided() bool { return !r.alone.empty() || r.serial[0].judging.Load() }

func protocolError(err error) bool {
	return err == errUnsolicited || err == errBadStatus || err == errTooEarly
}

func unknownIfWrite(c *transport.Chunk) xfer.Certainty {
	if c.Op == xfer.Write {
		return xfer.Unknown
	}
	return xfer.Confirmed
}

// refusal is the fault for a request that the peer rejected.
func refusal(r *route, c *transport.Chunk, code uint32) *xfer.Fault {
	f := r.fault(xfer.Refused, xfer.StageComplete, tcpframe.StatusText(code)+": "+describe(c), nil)
	f.Retry = xfer.Refresh
	return f
}
