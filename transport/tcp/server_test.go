package tcp

import (
	"bufio"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
)

// server is a target that a test writes by itself: it hands each accepted connection to serve.
type server struct {
	t        testing.TB
	l        *net.TCPListener
	accepted atomic.Int32

	mu    sync.Mutex
	conns []*conn
	gone  bool
	wg    sync.WaitGroup
	quit  chan struct{}
}

// conn is one connection of a server.
type conn struct {
	*net.TCPConn
	t      testing.TB
	in     *bufio.Reader
	number int // in the order of accepting, from 1
	quit   chan struct{}
}

// listenRaw starts a server; serve runs in a goroutine per connection, which is closed when it returns.
func listenRaw(t testing.TB, serve func(c *conn)) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, l: l.(*net.TCPListener), quit: make(chan struct{})}
	s.wg.Go(func() {
		for {
			c, err := s.l.AcceptTCP()
			if err != nil {
				return
			}
			k := &conn{TCPConn: c, t: t, in: bufio.NewReaderSize(c, 64<<10), number: int(s.accepted.Add(1)), quit: s.quit}
			s.mu.Lock()
			s.conns = append(s.conns, k)
			if s.gone {
				c.Close()
			}
			s.mu.Unlock()
			s.wg.Go(func() {
				serve(k)
				k.Close()
			})
		}
	})
	t.Cleanup(func() {
		close(s.quit)
		s.vanish()
		s.wg.Wait()
	})
	return s
}

// closeAll ends all connections that are open now.
func (s *server) closeAll() { s.end(false) }

func (s *server) end(byReset bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		if byReset {
			c.reset()
		}
		c.Close()
	}
	s.conns = nil
}

// narrow gives the connections to come room for little that is not read.
func (s *server) narrow() {
	s.t.Helper()
	raw, err := s.l.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 64<<10); err != nil {
				s.t.Error(err)
			}
		})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// vanish ends the server and all its connections, those that are only being made included.
func (s *server) vanish() {
	s.l.Close()
	s.mu.Lock()
	s.gone = true
	s.mu.Unlock()
	s.closeAll()
}

// endAll ends all connections of a route that has nothing to do, those that are only being made included.
func (s *server) endAll(r *route) {
	s.t.Helper()
	eventually(s.t, "the end of all connections is noticed", func() bool {
		s.closeAll()
		return !slices.ContainsFunc(r.lanes, func(l *lane) bool { return l.up.Load() })
	})
}

// desc describes the server with one large buffer; incarnation 0 makes it a published engine.
func (s *server) desc(version int, incarnation uint64) *segment.Desc {
	d := &segment.Desc{Name: "raw", Protocols: []string{Name}, Buffers: []segment.Buffer{{Addr: remoteBase, Len: remoteSize}},
		TCP: segment.Endpoint{Host: "127.0.0.1", Port: uint16(s.l.Addr().(*net.TCPAddr).Port), Version: version}}
	if incarnation != 0 {
		d.Ext = &segment.Extension{Incarnation: incarnation, HelloVersion: 1}
	}
	return d
}

const (
	remoteBase = 0x7f0000000000
	remoteSize = 64 << 20
)

// header reads a request header; false at the end of the connection.
func (c *conn) header() (h tcpframe.Header, padding []byte, ok bool) {
	var f [tcpframe.HeaderLen]byte
	if _, err := io.ReadFull(c.in, f[:]); err != nil {
		return h, nil, false
	}
	return tcpframe.ParseHeader(f[:]), f[17:], true
}

func (c *conn) payload(n uint64) ([]byte, bool) {
	b := make([]byte, n)
	_, err := io.ReadFull(c.in, b)
	return b, err == nil
}

// put sends bytes; false at the end of the connection.
func (c *conn) put(parts ...[]byte) bool {
	_, err := c.Write(slices.Concat(parts...))
	return err == nil
}

// reset ends the connection by a reset.
func (c *conn) reset() { reset(c.TCPConn) }

// greet accepts a hello that must come first.
func (c *conn) greet(incarnation uint64) bool {
	f := make([]byte, tcpframe.HeaderLen)
	if _, err := io.ReadFull(c.in, f); err != nil {
		return false
	}
	h, err := tcpframe.ParseHello(f)
	if err != nil || h.Incarnation != incarnation || h.Features != tcpframe.FeatureDrain {
		c.t.Errorf("hello % x: %v", f, err)
	}
	return c.put(helloAnswer(tcpframe.HelloAnswer{Code: tcpframe.OK, Incarnation: incarnation, Version: 1, Features: tcpframe.FeatureDrain, DrainLimit: drainLimit}))
}

// stand does nothing until the test ends, as a frozen peer.
func (c *conn) stand() { <-c.quit }

// waitEnd reads until the peer ends the connection; extra bytes are none of the caller's business.
func (c *conn) waitEnd() { _, _ = io.Copy(io.Discard, c.in) }

// target is an honest server over memory of its own at remoteBase. Without incarnation it behaves as the
// published engine: status 1 and a close, with whatever is unread.
type target struct {
	incarnation uint64
	version     int
	once        bool                       // it serves one request per connection
	refuse      func(addr uint64) bool     // addresses that are rejected
	rejection   func(c *conn)              // how, instead of by status 1 and a close
	before      func(tcpframe.Header) bool // each request; false ends the connection

	mu       sync.Mutex
	memory   []byte
	executed map[uint64]int // by address
}

func (g *target) serve(c *conn) {
	if g.incarnation != 0 && !c.greet(g.incarnation) {
		return
	}
	for g.one(c) && !g.once {
	}
}

func (g *target) one(c *conn) bool {
	h, _, ok := c.header()
	if !ok || g.before != nil && !g.before(h) {
		return false
	}
	v2 := h.Opcode&tcpframe.OpV2 != 0
	if v2 != (g.version >= 2) {
		c.t.Errorf("opcode %#x for a peer of version %d", h.Opcode, g.version)
	}
	if h.Addr < remoteBase || h.Addr+h.Size > remoteBase+remoteSize || g.refuse != nil && g.refuse(h.Addr) {
		return g.reject(c, h, v2)
	}
	if h.Opcode&^tcpframe.OpV2 == tcpframe.OpWrite {
		b, ok := c.payload(h.Size)
		if !ok {
			return false
		}
		g.store(h.Addr, b)
		return !v2 || c.put(status(tcpframe.OK))
	}
	g.count(h.Addr)
	answer := g.load(h.Addr, h.Size)
	if v2 {
		answer = append(status(tcpframe.OK), answer...)
	}
	return c.put(answer)
}

func (g *target) reject(c *conn, h tcpframe.Header, v2 bool) bool {
	switch {
	case g.rejection != nil:
		g.rejection(c)
		return false
	case !v2:
		return false
	case g.incarnation == 0:
		c.put(status(tcpframe.AddressRejected))
		return false
	case !c.put(status(tcpframe.AddressRejected)):
		return false
	case h.Opcode == v2Write:
		_, ok := c.payload(h.Size)
		return ok
	}
	return true
}

func (g *target) room() {
	if g.memory == nil {
		g.memory = make([]byte, remoteSize)
		g.executed = make(map[uint64]int)
	}
}

func (g *target) store(addr uint64, b []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.room()
	copy(g.memory[addr-remoteBase:], b)
	g.executed[addr]++
}

func (g *target) count(addr uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.room()
	g.executed[addr]++
}

func (g *target) load(addr, n uint64) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.room()
	return slices.Clone(g.memory[addr-remoteBase:][:n])
}

// times returns how often the request at addr was executed.
func (g *target) times(addr uint64) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.executed[addr]
}

// start serves the target and returns its description.
func (g *target) start(t testing.TB) (*server, *segment.Desc) {
	t.Helper()
	s := listenRaw(t, g.serve)
	return s, s.desc(g.version, g.incarnation)
}
