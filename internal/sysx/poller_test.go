package sysx

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// listening returns a socket that the runtime does not know, and its address.
func listening(t *testing.T) (int, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	raw, err := file.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	fd := -1
	if err := raw.Control(func(u uintptr) { fd = int(u) }); err != nil {
		t.Fatal(err)
	}
	return fd, l.Addr().String()
}

func newPoller(t *testing.T) *Poller {
	t.Helper()
	p, err := NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestPollerTellsOfConnectionsDataAndTheirEnd(t *testing.T) {
	socket, address := listening(t)
	p := newPoller(t)
	if err := p.Add(socket); err != nil {
		t.Fatal(err)
	}
	if _, err := Accept(socket); err != unix.EAGAIN {
		t.Fatalf("accept without a connection: %v", err)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	expect := func(what string, fd int) {
		t.Helper()
		got, err := p.Wait(nil)
		if err != nil || len(got) != 1 || got[0] != fd {
			t.Fatalf("%s: ready is %v, %v; want %d", what, got, err, fd)
		}
	}
	expect("a connection", socket)
	fd, err := Accept(socket)
	if err != nil {
		t.Fatal(err)
	}
	if got := PeerAddress(fd); got != c.LocalAddr().String() {
		t.Errorf("peer is %s, want %s", got, c.LocalAddr())
	}
	if err := p.Add(fd); err != nil {
		t.Fatal(err)
	}
	s := NewBareStream(fd)
	b := make([]byte, 10)
	if n, err := s.TryRead([]unix.Iovec{Vec(b)}); n != 0 || err != nil {
		t.Errorf("read without data: %d, %v", n, err)
	}
	if n, err := s.Read([]unix.Iovec{Vec(b)}); n != 0 || err != unix.EAGAIN {
		t.Errorf("a read that would wait: %d, %v; want EAGAIN", n, err)
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	expect("data", fd)
	expect("data that was not read", fd)
	if n, err := s.TryRead([]unix.Iovec{Vec(b)}); err != nil || string(b[:n]) != "hello" {
		t.Errorf("read %q, %v", b[:n], err)
	}
	if n, err := s.WriteSome([]unix.Iovec{Vec([]byte("answer"))}); n != 6 || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	if _, err := io.ReadFull(c, b[:6]); err != nil || string(b[:6]) != "answer" {
		t.Errorf("answer is %q, %v", b[:6], err)
	}
	if err := p.Remove(fd); err != nil {
		t.Error(err)
	}
	if err := p.Remove(fd); !errors.Is(err, unix.ENOENT) {
		t.Errorf("removed twice: %v", err)
	}
	if err := p.Add(fd); err != nil {
		t.Fatal(err)
	}
	c.Close()
	expect("the end", fd)
	if _, err := s.TryRead([]unix.Iovec{Vec(b)}); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	CloseSocket(fd)
	if PeerAddress(fd) != "gone" {
		t.Error("a closed socket has a peer")
	}
}

func TestClosingAPollerEndsItsWait(t *testing.T) {
	socket, address := listening(t)
	p := newPoller(t)
	if err := p.Add(socket); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := p.Wait(nil)
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Fatalf("wait ended by itself: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	p.Close()
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Errorf("wait ended with %v", err)
	}
	c, err := net.Dial("tcp", address) // the socket stays open
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestAdoptMakesAConnection(t *testing.T) {
	socket, address := listening(t)
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fd, err := Accept(socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := SetOption(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 1234); err != nil {
		t.Error(err)
	}
	a, err := Adopt(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := SetOption(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 1234); !errors.Is(err, syscall.EBADF) {
		t.Errorf("the descriptor is open after it was adopted: %v", err)
	}
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if n, err := a.Read(b); n != 1 || err != nil { // parks and wakes
		t.Errorf("read %d, %v", n, err)
	}
	if _, err := Adopt(fd); err == nil {
		t.Error("a closed descriptor was adopted")
	}
}
