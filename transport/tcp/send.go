package tcp

//moonpath:hot

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/internal/sysx"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// pump fills the ring and writes until there is nothing to take, the window is full, or the socket is full
// or calls have been made; then the writer goes on. The caller holds pumpMu and loses it.
func (l *lane) pump(calls int) {
	for {
		if !l.up.Load() {
			l.pumpMu.Unlock()
			rouse(l.wake)
			return
		}
		l.kicked.Store(false)
		for l.take() || l.unsent() {
			if calls == 0 {
				l.full <- struct{}{}
				return
			}
			calls--
			n, err := l.stream.TryWriteFlow()
			if err != nil {
				l.cannotWrite(err)
				l.pumpMu.Unlock()
				return
			}
			l.afterWrite()
			if n == 0 && l.unsent() {
				l.full <- struct{}{}
				return
			}
		}
		l.pumpMu.Unlock()
		if !l.kicked.Load() || !l.pumpMu.TryLock() {
			return
		}
	}
}

// runWriter goes on where the socket was full. It gets pumpMu held.
func (l *lane) runWriter() {
	var tether sysx.Tether
	defer tether.Free()
	for {
		select {
		case <-l.full:
		case <-l.r.ctx.Done():
			return
		}
		if l.large.Load() > 0 {
			tether.Follow()
		}
		if _, err := l.stream.WriteFlow(); err != nil {
			l.cannotWrite(err)
			l.pumpMu.Unlock()
			continue
		}
		l.afterWrite()
		l.pump(maxWriterCalls)
	}
}

// maxWriterCalls lets the writer go on without being woken for each call.
const maxWriterCalls = 1 << 30

// cannotWrite leaves the rest to the reader. If the peer has ended the connection, the reader first finds what
// came before the end: answers, and the rejection that is the reason for it. pumpMu is held.
func (l *lane) cannotWrite(err error) {
	l.up.Store(false)
	if err == unix.EFAULT {
		l.unmapped.Store(true)
	}
	if !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) {
		l.conn.Close()
	}
	rouse(l.passed) // the reader may wait for the request to get out
}

func (l *lane) unsent() bool { return l.sent.Load() < l.tail.Load() }

// afterWrite tidies up behind canceled entries; pumpMu is held.
func (l *lane) afterWrite() {
	if l.skips.Swap(false) {
		l.recvMu.Lock()
		l.passSkipped()
		l.recvMu.Unlock()
	}
	if l.hurry.Load() {
		l.letGo()
	}
}

// letGo gives a canceled request back that was half sent and is out now.
func (l *lane) letGo() {
	var done []transport.Completion
	l.recvMu.Lock()
	sent, waits := l.sent.Load(), false
	for i := l.head.Load(); i < l.tail.Load(); i++ {
		e := &l.ring[i%laneSlots]
		switch {
		case !e.half || e.gone:
		case i < sent:
			e.gone = true
			e.memory = nil
			done = append(done, transport.Completion{Ref: e.work.chunk.Ref, Fault: l.r.interrupted(), Remote: unknownIfWrite(&e.work.chunk)})
		default:
			waits = true
		}
	}
	l.hurry.Store(waits)
	l.recvMu.Unlock()
	if len(done) > 0 {
		l.r.source.Done(done)
	}
}

// take fills the ring from what must be sent again and from the source; pumpMu is held.
func (l *lane) take() bool {
	l.r.moves.RLock()
	defer l.r.moves.RUnlock()
	tail := l.tail.Load()
	room := int(laneSlots - (tail - l.head.Load()))
	bytes := l.link.window - l.bytes.Load()
	if room == 0 || bytes <= 0 {
		return false
	}
	room = min(room, takeBatch)
	n, bars := l.takeTrial(room)
	if bars {
		return false
	}
	if n == 0 && l.wants().Has(transport.Bulk) {
		n = l.r.again.take(l.works[:room])
	}
	if n == 0 {
		n = l.r.source.Take(transport.Want{Bytes: uint64(bytes), Piece: pieceBytes, Queues: l.wants()}, l.chunks[:room])
		for i := range l.chunks[:n] {
			l.works[i] = work{chunk: l.chunks[i]}
		}
	}
	if n == 0 {
		return false
	}
	total, large := int64(0), int32(0)
	for i := range l.works[:n] {
		w := &l.works[i]
		e := &l.ring[(tail+uint64(i))%laneSlots]
		opcode := tcpframe.OpV2 | byte(w.chunk.Op) // the numbers of operation and opcode are the same
		tcpframe.PutHeader(&e.header, w.chunk.Len, w.chunk.Remote, opcode)
		e.work, e.memory, e.skip, e.gone, e.half, e.code = *w, w.chunk.Memory(), false, false, false, tcpframe.OK
		total += int64(w.chunk.Len)
		if w.chunk.Queue != transport.Small {
			large++
		}
	}
	l.bytes.Add(total)
	if large > 0 {
		l.large.Add(large)
		l.stream.SetBulk(true)
	}
	if int(large) < n {
		sysx.Hurry()
	}
	l.tail.Store(tail + uint64(n))
	return true
}

// wants is what the lane takes besides its own queues. A lane for bulk takes small requests while nothing
// large is on it, so that many submitters of small ones do not share one lane, and suspects if a rejection does
// not end the connection. Lanes that cannot be connected leave their work to the others.
func (l *lane) wants() transport.QueueSet {
	q := l.queues
	if l.index > 0 && (l.large.Load() == 0 || l.r.lanes[0].failed.Load()) {
		q |= transport.Set(transport.Small)
	}
	if l.index == 0 && l.r.bulkFailed() {
		q |= transport.Set(transport.Bulk)
	}
	if l.link.drains && q.Has(transport.Bulk) {
		q |= transport.Set(transport.Suspect)
	}
	return q
}

// sender writes the entries from sent to tail.
type sender struct{ l *lane }

// Vectors implements sysx.Flow.
func (s sender) Vectors() []unix.Iovec {
	l := s.l
	l.sendMu.Lock()
	vs := l.sendVs[:0]
	tail := l.tail.Load()
	skip := l.sendOff
	budget := l.callLimit()
	for i := l.sent.Load(); i < tail && len(vs)+2 <= cap(vs); i++ {
		e := &l.ring[i%laneSlots]
		if e.skip {
			continue
		}
		if skip < tcpframe.HeaderLen {
			vs = append(vs, sysx.Vec(e.header[skip:]))
			skip = 0
		} else {
			skip -= tcpframe.HeaderLen
		}
		if e.work.chunk.Op == xfer.Write {
			payload := e.memory[skip:]
			if uint64(len(payload)) > budget {
				payload = payload[:budget]
			}
			if len(payload) > 0 {
				vs = append(vs, sysx.Vec(payload))
			}
			budget -= uint64(len(payload))
			if budget == 0 {
				break
			}
		}
		skip = 0
	}
	l.sendVs = vs
	return vs
}

// Moved implements sysx.Flow.
func (s sender) Moved(n int) {
	l := s.l
	left := uint64(n)
	i, tail := l.sent.Load(), l.tail.Load()
	off := l.sendOff + left
	for i < tail {
		e := &l.ring[i%laneSlots]
		if e.skip {
			l.skips.Store(true)
			i++
			continue
		}
		size := uint64(tcpframe.HeaderLen)
		if e.work.chunk.Op == xfer.Write {
			size += e.work.chunk.Len
		}
		if off < size {
			break
		}
		off -= size
		i++
	}
	l.sendOff = off
	l.sent.Store(i)
	l.sendMu.Unlock()
	if n > 0 {
		l.progress.Add(1)
	}
	select {
	case l.passed <- struct{}{}:
	default:
	}
}
