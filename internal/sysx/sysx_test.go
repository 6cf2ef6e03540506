package sysx

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// pair is a connection over loopback.
func pair(t testing.TB) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); d.Close() })
	return c.(*net.TCPConn), d.(*net.TCPConn)
}

func stream(t testing.TB, c *net.TCPConn, in, out Flow) *Stream {
	t.Helper()
	s, err := NewStream(c, in, out)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func vecs(parts ...[]byte) (vs []unix.Iovec) {
	for _, p := range parts {
		vs = append(vs, Vec(p))
	}
	return vs
}

func TestWriteAndReadMoveManyVectors(t *testing.T) {
	a, b := pair(t)
	out, in := stream(t, a, nil, nil), stream(t, b, nil, nil)
	var parts [][]byte
	for i := range 3*MaxVectors + 5 { // more than one call takes
		parts = append(parts, bytes.Repeat([]byte{byte(i)}, i%1000+1))
	}
	want := slices.Concat(parts...)
	done := make(chan error, 1)
	go func() { done <- out.Write(vecs(parts...)) }()
	got := make([]byte, len(want))
	for n := 0; n < len(got); {
		half := n + (len(got)-n+1)/2
		vs := vecs(got[n:half])
		if half < len(got) {
			vs = append(vs, Vec(got[half:]))
		}
		k, err := in.Read(vs)
		if err != nil || k == 0 {
			t.Fatalf("read %d, %v", k, err)
		}
		n += k
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("bytes differ")
	}
}

func TestTryReadDoesNotWait(t *testing.T) {
	a, b := pair(t)
	s := stream(t, b, nil, nil)
	buf := make([]byte, 10)
	if n, err := s.TryRead(vecs(buf)); n != 0 || err != nil {
		t.Errorf("empty: %d, %v", n, err)
	}
	if _, err := a.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); ; {
		n, err := s.TryRead(vecs(buf))
		if n == 3 && err == nil {
			break
		}
		if n != 0 || err != nil || time.Since(begin) > patience {
			t.Fatalf("%d, %v", n, err)
		}
		runtime.Gosched()
	}
	a.Close()
	for begin := time.Now(); ; runtime.Gosched() {
		n, err := s.TryRead(vecs(buf))
		if err == io.EOF {
			break
		}
		if n != 0 || err != nil || time.Since(begin) > patience {
			t.Fatalf("%d, %v", n, err)
		}
	}
}

func TestTheEndsOfAConnection(t *testing.T) {
	buf := make([]byte, 10)
	a, b := pair(t)
	a.Close()
	if n, err := stream(t, b, nil, nil).Read(vecs(buf)); n != 0 || err != io.EOF {
		t.Errorf("after a close: %d, %v", n, err)
	}
	a, b = pair(t)
	a.SetLinger(0)
	a.Close()
	if n, err := stream(t, b, nil, nil).Read(vecs(buf)); n != 0 || err != unix.ECONNRESET {
		t.Errorf("after a reset: %d, %v", n, err)
	}
	_, b = pair(t)
	b.Close()
	if _, err := stream(t, b, nil, nil).Read(vecs(buf)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("on a closed connection: %v", err)
	}
	if err := stream(t, b, nil, nil).Write(vecs(buf)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("on a closed connection: %v", err)
	}
}

func TestDeadlinesHold(t *testing.T) {
	_, b := pair(t)
	s := stream(t, b, nil, nil)
	b.SetDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := s.Read(vecs(make([]byte, 10))); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	b.SetDeadline(time.Now().Add(20 * time.Millisecond))
	var err error
	for range 1000 { // until the socket is full
		if err = s.Write(vecs(make([]byte, 1<<20))); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write: %v", err)
	}
}

func TestUnmappedMemoryIsAnError(t *testing.T) {
	a, b := pair(t)
	gone, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(gone)
	v := Vec(gone)
	if _, err := stream(t, a, nil, nil).WriteSome([]unix.Iovec{v}); err != unix.EFAULT {
		t.Errorf("write: %v", err)
	}
	if _, err := a.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := stream(t, b, nil, nil).Read([]unix.Iovec{v}); err != unix.EFAULT {
		t.Errorf("read: %v", err)
	}
}

// flow hands out what is left of a buffer in small vectors, and counts attempts.
type flow struct {
	mu       sync.Mutex
	left     []byte
	attempts int
	open     bool // between Vectors and Moved
	misuse   bool
	waits    chan struct{} // closed when an attempt found the socket not ready
}

func (f *flow) Vectors() (vs []unix.Iovec) {
	f.mu.Lock()
	f.misuse = f.misuse || f.open
	f.open = true
	f.attempts++
	for i := 0; i < len(f.left) && len(vs) < 100; i += 10000 {
		vs = append(vs, Vec(f.left[i:min(i+10000, len(f.left))]))
	}
	return vs
}

func (f *flow) Moved(n int) {
	f.misuse = f.misuse || !f.open
	f.open = false
	f.left = f.left[n:]
	if n == 0 && f.waits != nil {
		close(f.waits)
		f.waits = nil
	}
	f.mu.Unlock()
}

func TestFlowsDecideAnewBeforeEachAttempt(t *testing.T) {
	a, b := pair(t)
	want := make([]byte, 8<<20)
	for i := range want {
		want[i] = byte(i * 7 >> 3)
	}
	got := make([]byte, len(want))
	out, in := &flow{left: want}, &flow{left: got, waits: make(chan struct{})}
	reading := in.waits
	sink, src := stream(t, a, nil, out), stream(t, b, in, nil)
	done := make(chan error, 1)
	go func() {
		for {
			n, err := src.ReadFlow()
			if err == io.EOF {
				err = nil
			}
			if err != nil || n == 0 {
				done <- err
				return
			}
		}
	}()
	<-reading // it is parked, having touched nothing
	for {
		n, err := sink.WriteFlow()
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	if n, err := sink.TryWriteFlow(); n != 0 || err != nil {
		t.Errorf("a flow without vectors moved %d, %v", n, err)
	}
	a.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("bytes differ")
	}
	if in.misuse || out.misuse || in.open || out.open {
		t.Error("Vectors and Moved are not paired")
	}
}

func TestTryWriteFlowDoesNotWait(t *testing.T) {
	a, _ := pair(t)
	f := &flow{left: make([]byte, 64<<20)}
	s := stream(t, a, nil, f)
	for {
		n, err := s.TryWriteFlow()
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	if len(f.left) == 0 {
		t.Fatal("all of it went into the socket")
	}
	waits := make(chan struct{})
	f.waits = waits
	parked := make(chan error, 1)
	go func() {
		_, err := s.WriteFlow()
		parked <- err
	}()
	<-waits
	a.Close()
	if err := <-parked; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a close ended the call with %v", err)
	}
	if f.open {
		t.Error("Vectors without Moved")
	}
}

func TestLargeCallsTakeTurnsWhileSmallRequestsAreAbout(t *testing.T) {
	for range cap(turns) { // nobody else gets one
		turns <- struct{}{}
	}
	t.Cleanup(func() { Relax(); Relax() })
	Hurry()
	a, b := pair(t)
	done := make(chan error, 1)
	bulk := stream(t, a, nil, nil)
	bulk.SetBulk(true)
	go func() { done <- bulk.Write(vecs(make([]byte, 1<<20))) }()
	other := stream(t, b, nil, nil)
	if err := other.Write(vecs(make([]byte, 2*smallCall))); err != nil {
		t.Errorf("a large call of small requests: %v", err)
	}
	other.SetBulk(true)
	if err := other.Write(vecs(make([]byte, smallCall))); err != nil {
		t.Errorf("a small call: %v", err)
	}
	_ = b.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := b.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a large call did not wait for its turn: %d, %v", n, err)
	}
	for range cap(turns) {
		<-turns
	}
	_ = b.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(b, make([]byte, 1<<20)); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(turns) != 0 {
		t.Errorf("%d turns were not given back", len(turns))
	}
}

func TestTurnsEndWhenSmallRequestsDo(t *testing.T) {
	Relax()
	Relax()
	if hurrying.Load() {
		t.Error("nobody is in a hurry, and large calls take turns")
	}
	Hurry()
	Relax()
	if !hurrying.Load() {
		t.Error("one Relax after Hurry ends the turns")
	}
	Relax()
	if hurrying.Load() {
		t.Error("the second Relax does not")
	}
}

func TestAdvance(t *testing.T) {
	b := []byte("abcdefghij")
	for n := range len(b) + 1 {
		vs := Advance(vecs(b[:1], b[1:4], b[4:5], b[5:]), n)
		var got []byte
		for _, v := range vs {
			got = append(got, Bytes(v)...)
		}
		if string(got) != string(b[n:]) {
			t.Errorf("after %d bytes: %q", n, got)
		}
	}
}

func TestExtendJoinsNeighboursOnly(t *testing.T) {
	b := []byte("abcdefghij")
	v := Vec(b[:3])
	if Extend(&v, b[2:4], 1) || string(Bytes(v)) != "abc" {
		t.Error("joined memory that does not follow")
	}
	if !Extend(&v, b[2:3], 2) || string(Bytes(v)) != "abcde" {
		t.Errorf("got %q", Bytes(v))
	}
	if !Extend(&v, b[:5], 5) || string(Bytes(v)) != string(b) {
		t.Errorf("got %q", Bytes(v))
	}
}
