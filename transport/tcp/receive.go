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

// Why a connection cannot go on.
var (
	errUnsolicited = errors.New("the peer sent bytes that nobody asked for")
	errBadStatus   = errors.New("the peer's answer is no status frame; it speaks version 1")
	errTooEarly    = errors.New("the peer confirmed a request before it was sent")
	errRefused     = errors.New("the peer refused a request")
	errCut         = errors.New("the connection ended while a refused request was still being sent")
)

// receive takes answers until the connection ends.
func (l *lane) receive() error {
	var tether sysx.Tether
	defer tether.Free()
	for {
		if l.large.Load() > 0 {
			tether.Follow()
		}
		_, err := l.stream.ReadFlow()
		if err != nil || l.broke != nil || l.doneBytes >= bulkPayload || len(l.done) >= takeBatch {
			l.giveBack() // what is less waits for the end of the burst, in Moved
		}
		if l.broke != nil {
			return l.broke
		}
		if err != nil {
			return err
		}
		for l.early {
			select {
			case <-l.passed:
			case <-l.r.ctx.Done():
				return l.r.ctx.Err()
			}
			if !l.up.Load() {
				return errCut
			}
			l.recvMu.Lock()
			l.settleEarly()
			l.recvMu.Unlock()
			l.giveBack()
		}
		l.kick()
	}
}

// giveBack hands the finished chunks to the engine.
func (l *lane) giveBack() {
	if len(l.done) == 0 {
		return
	}
	l.fruitless = 0
	l.count.requests.Add(uint64(len(l.done)))
	l.count.bytes.Add(l.doneBytes)
	l.doneBytes = 0
	l.r.source.Done(l.done)
	l.done = l.done[:0]
}

// receiver scatters the answers to the entries from head to tail: the order and the length of what will come
// is known, so one call fills status frames and many destinations.
type receiver struct{ l *lane }

// Vectors implements sysx.Flow.
func (s receiver) Vectors() []unix.Iovec {
	l := s.l
	l.recvMu.Lock()
	vs := l.recvVs[:0]
	got := l.got
	budget := l.callLimit()
	tail := l.tail.Load()
	slot := 0 // in statuses
	from := 0 // start of the run of status frames that are not in vs yet
	for i := l.head.Load(); i < tail && len(vs)+3 <= cap(vs); i++ {
		e := &l.ring[i%laneSlots]
		if e.skip {
			continue
		}
		if got < tcpframe.StatusLen {
			if slot == 0 {
				from = int(got) // the first bytes of a status frame that came in two parts
			}
			slot++
			got = 0
		} else {
			got -= tcpframe.StatusLen
			if slot == 0 {
				from, slot = tcpframe.StatusLen, 1 // its status frame is in already
			}
		}
		if e.work.chunk.Op == xfer.Read {
			if end := slot * tcpframe.StatusLen; end > from {
				vs = append(vs, sysx.Vec(l.statuses[from:end]))
				from = end
			}
			n := min(e.work.chunk.Len-got, budget)
			if e.gone {
				n = min(n, uint64(len(l.wasted())))
				vs = append(vs, sysx.Vec(l.waste[:n]))
				budget = n // and no more in this call: replay needs to find all that it read
			} else {
				vs = append(vs, sysx.Vec(e.memory[got:got+n]))
			}
			budget -= n
			if n < e.work.chunk.Len-got || budget == 0 {
				break
			}
		}
		got = 0
	}
	if end := slot * tcpframe.StatusLen; end > from {
		vs = append(vs, sysx.Vec(l.statuses[from:end]))
	}
	if len(vs) == 0 {
		// Nothing is owed: any byte breaks the protocol, and the end of the stream is noticed here.
		vs = append(vs, sysx.Vec(l.statuses[:1]))
	}
	l.recvVs = vs
	return vs
}

func (l *lane) wasted() []byte {
	if l.waste == nil {
		l.waste = make([]byte, bounceBytes)
	}
	return l.waste
}

// Moved implements sysx.Flow.
func (s receiver) Moved(n int) {
	l := s.l
	if n > 0 {
		l.progress.Add(1)
		l.r.received.Add(1)
		l.settle(uint64(n))
	}
	l.passSkipped()
	l.recvMu.Unlock()
	if n == 0 {
		// The burst has ended and the reader parks: whoever waits for these runs at once, on its processor.
		l.giveBack()
	}
}

// settle works off n bytes that lie where Vectors put them.
func (l *lane) settle(n uint64) {
	slot := 0
	total := n
	tail := l.tail.Load()
	for n > 0 && l.broke == nil {
		e := l.front(tail)
		if e == nil {
			l.broke = errUnsolicited
			return
		}
		if l.got < tcpframe.StatusLen {
			k := min(tcpframe.StatusLen-l.got, n)
			l.got += k
			n -= k
			at := slot * tcpframe.StatusLen
			slot++
			if l.got < tcpframe.StatusLen {
				copy(l.statuses[:], l.statuses[at:at+int(l.got)])
				return
			}
			head, isRead := l.head.Load(), e.work.chunk.Op == xfer.Read // the entry may be used again once head has passed it
			if !l.status(e, l.statuses[at:at+tcpframe.StatusLen]) {
				return
			}
			if isRead && l.head.Load() != head && n > 0 { // rejected
				l.replay(total, n)
				return
			}
			continue
		}
		if slot == 0 {
			slot = 1
		}
		k := min(tcpframe.StatusLen+e.work.chunk.Len-l.got, n)
		l.got += k
		n -= k
		if l.got == tcpframe.StatusLen+e.work.chunk.Len {
			l.finish(e, nil)
		}
	}
}

// front returns the entry that the next byte belongs to, or nil if no answer is owed.
func (l *lane) front(tail uint64) *entry {
	for {
		h := l.head.Load()
		if h == tail {
			return nil
		}
		if e := &l.ring[h%laneSlots]; !e.skip {
			return e
		}
		l.pass()
	}
}

// pass moves head over an entry that is finished.
func (l *lane) pass() {
	e := &l.ring[l.head.Load()%laneSlots]
	l.bytes.Add(-int64(e.work.chunk.Len))
	if e.work.chunk.Queue != transport.Small && l.large.Add(-1) == 0 {
		l.stream.SetBulk(false)
	}
	e.memory = nil
	l.head.Add(1)
	l.got = 0
}

// passSkipped moves head over canceled entries that the sender has passed, so that a lane which has nothing
// else is idle. recvMu is held.
func (l *lane) passSkipped() {
	for h := l.head.Load(); h < l.sent.Load() && l.ring[h%laneSlots].skip; h++ {
		l.pass()
	}
}

// status takes the status frame of the entry at head; false ends the burst.
func (l *lane) status(e *entry, frame []byte) bool {
	code, ok := tcpframe.ParseStatus(frame)
	switch {
	case !ok:
		l.broke = errBadStatus
		return false
	case !l.out():
		// A rejection may come before the payload is out; nothing else may.
		if code == tcpframe.OK {
			l.broke = errTooEarly
			return false
		}
		e.code = code
		l.refused = !l.link.drains
		if l.refused {
			l.broke = errRefused
		} else {
			l.early = true
		}
		return false
	}
	l.answers++
	e.code = code
	if code != tcpframe.OK {
		l.refuse(e)
		return l.broke == nil
	}
	if e.work.chunk.Op == xfer.Write {
		l.finish(e, nil)
	}
	return true
}

// out reports whether the request at head has left as a whole. The sender notes that after its call has
// returned, and the answer may be faster, so a call that is being made is waited for.
func (l *lane) out() bool {
	h := l.head.Load()
	if h < l.sent.Load() {
		return true
	}
	l.sendMu.Lock()
	defer l.sendMu.Unlock()
	return h < l.sent.Load()
}

// settleEarly finishes a request that was rejected before it was out, once it is.
func (l *lane) settleEarly() {
	if !l.out() {
		return
	}
	l.early = false
	l.answers++
	l.refuse(&l.ring[l.head.Load()%laneSlots])
}

// refuse fails the entry at head as the peer asked. A peer that does not drain closes now.
func (l *lane) refuse(e *entry) {
	if !l.link.drains {
		l.refused = true
		l.broke = errRefused
		return
	}
	l.finish(e, refusal(l.r, &e.work.chunk, e.code))
}

// finish gives the entry at head back.
func (l *lane) finish(e *entry, f *xfer.Fault) {
	switch {
	case e.gone:
	case f == nil:
		l.done = append(l.done, transport.Completion{Ref: e.work.chunk.Ref})
	default:
		l.done = append(l.done, e.work.given(f))
	}
	l.doneBytes += e.work.chunk.Len
	l.pass()
}

// replay works off the last n of total bytes after a rejected read: the payload that was expected did not
// come, so what follows lies in the wrong places. It is gathered and dealt out again; rejections are rare.
func (l *lane) replay(total, n uint64) {
	rest := make([]byte, 0, n)
	skip := total - n
	for _, v := range l.recvVs {
		part := sysx.Bytes(v)
		if skip >= uint64(len(part)) {
			skip -= uint64(len(part))
			continue
		}
		part = part[skip:]
		skip = 0
		rest = append(rest, part[:min(len(part), cap(rest)-len(rest))]...)
	}
	l.deal(rest)
}

// deal works off bytes in the order of the wire, copying payload to where it belongs.
func (l *lane) deal(b []byte) {
	tail := l.tail.Load()
	for len(b) > 0 && l.broke == nil {
		e := l.front(tail)
		if e == nil {
			l.broke = errUnsolicited
			return
		}
		if l.got < tcpframe.StatusLen {
			k := copy(l.statuses[l.got:tcpframe.StatusLen], b)
			b = b[k:]
			if l.got += uint64(k); l.got == tcpframe.StatusLen && !l.status(e, l.statuses[:tcpframe.StatusLen]) {
				return
			}
			continue
		}
		at := l.got - tcpframe.StatusLen
		k := min(e.work.chunk.Len-at, uint64(len(b)))
		if !e.gone {
			copy(e.memory[at:], b[:k])
		}
		b = b[k:]
		if l.got += k; l.got == tcpframe.StatusLen+e.work.chunk.Len {
			l.finish(e, nil)
		}
	}
}
