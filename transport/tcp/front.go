package tcp

//moonpath:goroutines

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/internal/sysx"
	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
)

// front accepts connections and serves those that have one small request at a time, as published initiators do. By
// default they even open a connection for every request; a goroutine, and a place in the runtime's poller, for each
// would cost as much as the exchange itself. A hello, a large request, a header in parts, and a request behind another
// one promote a connection to a goroutine of its own; so does a crowd, which one goroutine would serve too slowly.
type front struct {
	a        *acceptor
	listener *os.File
	socket   int // its descriptor
	fresh    map[int]*session
	crowded  bool // more connections than frontCrowd were ready at once
	ended    chan struct{}
}

// frontCrowd is how many connections may be ready at once before those that come again are promoted, and how many
// there may be before new ones are. The second is not for our sake: a published initiator that opens dozens of
// connections at once sets its progress timer from two threads, and fails the more often the faster it is answered
// (docs/compat/interop.md).
const frontCrowd = 4

// acceptPause is how long nothing is accepted after that has failed.
const acceptPause = 50 * time.Millisecond

// acceptBurst bounds what is accepted before those that are there get their turn.
const acceptBurst = 16

func (f *front) watchListener() error {
	raw, err := f.listener.SyscallConn()
	if err != nil {
		return err
	}
	if controlErr := raw.Control(func(fd uintptr) {
		f.socket = int(fd)
		err = f.a.poller.Add(f.socket)
	}); controlErr != nil {
		return controlErr
	}
	return err
}

func (f *front) run() {
	defer close(f.ended)
	defer mem.ExpectFaults()()
	defer f.leave()
	var ready []int
	for {
		var err error
		if ready, err = f.a.poller.Wait(ready); err != nil {
			return
		}
		f.crowded = len(ready) > frontCrowd
		for _, fd := range ready {
			if fd == f.socket {
				f.accept()
			} else if s := f.fresh[fd]; s != nil {
				f.look(s)
			}
		}
	}
}

// leave ends what is idle; what is in the middle of an exchange goes on by itself, so that it can be finished.
func (f *front) leave() {
	f.listener.Close()
	for _, s := range f.fresh {
		if s.owed.Load() {
			f.promote(s)
		} else {
			f.drop(s)
		}
	}
}

func (f *front) accept() {
	for range acceptBurst {
		fd, err := sysx.Accept(f.socket)
		switch err {
		case nil:
			f.receive(fd)
		case unix.EAGAIN:
			return
		case unix.ECONNABORTED, unix.EINTR:
		default:
			// Out of descriptors, most likely: existing connections go on, new ones get their turn.
			f.a.t.log.Warn("data connection not accepted", "error", err)
			f.pause()
			return
		}
	}
}

// pause accepts nothing for a while.
func (f *front) pause() {
	_ = f.a.poller.Remove(f.socket)
	f.a.running.Go(func() {
		select {
		case <-time.After(acceptPause):
		case <-f.ended:
			return
		}
		f.a.mu.Lock() // the poller is closed after closing is set
		defer f.a.mu.Unlock()
		if !f.a.closing {
			_ = f.a.poller.Add(f.socket)
		}
	})
}

func (f *front) receive(fd int) {
	s := newFresh(f.a.t, fd)
	if !f.a.admit(s) {
		s.cut()
		s.end()
		return
	}
	f.fresh[fd] = s
	if len(f.fresh) > frontCrowd {
		f.promote(s)
		return
	}
	if f.look(s) {
		if err := f.a.poller.Add(fd); err != nil {
			f.a.t.log.Warn("data connection not served", "error", err)
			f.drop(s)
		}
	}
}

// look reads what is there and serves it if it is one whole small request; it reports whether the session stays here.
func (f *front) look(s *session) bool {
	n, err := s.readOnce()
	switch {
	case err != nil:
		f.drop(s)
		return false
	case n == 0:
		return true
	}
	s.w += n
	s.owed.Store(true)
	s.progress.Add(1)
	if !s.small() || s.begun && f.crowded {
		f.promote(s)
		return false
	}
	if !s.whole() && s.admissible() {
		return true // its payload is on the way
	}
	if !s.exchange() {
		f.drop(s)
		return false
	}
	if s.r < s.w || !s.flushAtOnce() {
		f.promote(s)
		return false
	}
	s.release()
	s.addUp()
	s.r, s.w = 0, 0
	s.owed.Store(false)
	return true
}

// promote gives a session a goroutine of its own, which goes on where this one is.
func (f *front) promote(s *session) {
	delete(f.fresh, s.fd)
	_ = f.a.poller.Remove(s.fd) // it may not be there yet
	if err := s.adopt(); err != nil {
		f.a.t.log.Warn("data connection not served", "error", err)
		s.end()
		f.a.forget(s)
		return
	}
	f.a.serve(s)
}

func (f *front) drop(s *session) {
	delete(f.fresh, s.fd)
	s.end()
	f.a.forget(s)
}

// small reports whether the request at the beginning of the input is one that front serves.
func (s *session) small() bool {
	if s.w < tcpframe.HeaderLen {
		return false
	}
	h := tcpframe.ParseHeader(s.in)
	return h.Opcode != tcpframe.OpHello && h.Size <= freshLimit
}

// admissible reports whether that request will not be refused, as far as can be said before its payload has come.
func (s *session) admissible() bool {
	h := tcpframe.ParseHeader(s.in)
	code, _ := s.check(h.Opcode&^tcpframe.OpV2, h)
	s.release() // nothing is held while it waits
	return code == tcpframe.OK
}

// whole reports whether all of it is there.
func (s *session) whole() bool {
	h := tcpframe.ParseHeader(s.in)
	return h.Opcode&^tcpframe.OpV2 != tcpframe.OpWrite || uint64(s.w-tcpframe.HeaderLen) >= h.Size
}
