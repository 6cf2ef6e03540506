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

// front accepts connections and serves the first exchange of each, if it is small and nothing has to be waited for
// in the middle of it. Published initiators open a connection for every request unless they were told otherwise;
// a goroutine, and a place in the runtime's poller, for each would cost as much as the exchange itself. Everything
// else, and every connection that comes with a second request, is promoted to a goroutine of its own.
type front struct {
	a        *acceptor
	listener *os.File
	socket   int // its descriptor
	fresh    map[int]*session
	ended    chan struct{}
}

// acceptPause keeps a failing accept from spinning.
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
			time.Sleep(acceptPause)
			return
		}
	}
}

func (f *front) receive(fd int) {
	s := newFresh(f.a.t, fd)
	if !f.a.admit(s) {
		s.cut()
		s.end()
		return
	}
	f.fresh[fd] = s
	if f.look(s) {
		if err := f.a.poller.Add(fd); err != nil {
			f.a.t.log.Warn("data connection not served", "error", err)
			f.drop(s)
		}
	}
}

// look reads what is there and serves it if it is a whole, small, first request; it reports whether the session
// stays here.
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
	if s.begun || !s.small() {
		f.promote(s)
		return false
	}
	if !s.whole() {
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

// whole reports whether all of it is there.
func (s *session) whole() bool {
	h := tcpframe.ParseHeader(s.in)
	return h.Opcode&^tcpframe.OpV2 != tcpframe.OpWrite || uint64(s.w-tcpframe.HeaderLen) >= h.Size
}
