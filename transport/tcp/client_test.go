package tcp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/wire/tcpframe"
)

// client is an initiator that sends what a test tells it to.
type client struct {
	t testing.TB
	c *net.TCPConn
}

func (h *host) client() *client {
	h.t.Helper()
	return h.clientOf(h.t)
}

func (h *host) clientOf(t testing.TB) *client {
	t.Helper()
	c, err := net.Dial("tcp", address("127.0.0.1", h.tr.Port()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{t, c.(*net.TCPConn)}
}

func frame(size, addr uint64, opcode byte) []byte {
	var f [tcpframe.HeaderLen]byte
	tcpframe.PutHeader(&f, size, addr, opcode)
	return f[:]
}

const (
	v1Read, v1Write = tcpframe.OpRead, tcpframe.OpWrite
	v2Read, v2Write = tcpframe.OpV2 | tcpframe.OpRead, tcpframe.OpV2 | tcpframe.OpWrite
)

// status is the status frame with that code.
func status(code uint32) []byte {
	f := make([]byte, tcpframe.StatusLen)
	tcpframe.PutStatus(f, code)
	return f
}

func readRequest(addr, n uint64) []byte { return frame(n, addr, v2Read) }

func writeRequest(addr uint64, payload []byte) []byte {
	return append(frame(uint64(len(payload)), addr, v2Write), payload...)
}

func (c *client) send(parts ...[]byte) {
	c.t.Helper()
	_ = c.c.SetWriteDeadline(time.Now().Add(patience))
	if _, err := c.c.Write(slices.Concat(parts...)); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// expect reads exactly these bytes.
func (c *client) expect(parts ...[]byte) {
	c.t.Helper()
	want := slices.Concat(parts...)
	got := make([]byte, len(want))
	_ = c.c.SetReadDeadline(time.Now().Add(patience))
	n, err := io.ReadFull(c.c, got)
	if err != nil {
		c.t.Fatalf("%v after %d of %d bytes: % x", err, n, len(want), got[:min(n, 64)])
	}
	if !bytes.Equal(got, want) {
		at := 0
		for got[at] == want[at] {
			at++
		}
		c.t.Fatalf("answer differs at byte %d of %d: got % x, want % x", at, len(want), got[at:min(at+16, len(got))], want[at:min(at+16, len(want))])
	}
}

// expectEnd expects the end of the connection, by a close or a reset, with no byte before it.
func (c *client) expectEnd() {
	c.t.Helper()
	c.expectEndWithin(patience)
}

func (c *client) expectEndWithin(limit time.Duration) {
	c.t.Helper()
	var b [64]byte
	_ = c.c.SetReadDeadline(time.Now().Add(limit))
	n, err := c.c.Read(b[:])
	if n > 0 || err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
		c.t.Fatalf("got % x, %v; want the end of the connection within %v", b[:n], err, limit)
	}
}

// expectSilence expects that the connection stays open and nothing comes for a while.
func (c *client) expectSilence(while time.Duration) {
	c.t.Helper()
	var b [64]byte
	_ = c.c.SetReadDeadline(time.Now().Add(while))
	n, err := c.c.Read(b[:])
	var timeout net.Error
	if n > 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
		c.t.Fatalf("got % x, %v; want silence for %v", b[:n], err, while)
	}
}

// promote makes the connection one that has a goroutine of its own.
func (c *client) promote(addr uint64) {
	c.t.Helper()
	c.send(readRequest(addr, 1), readRequest(addr, 1))
	var answer [2 * (tcpframe.StatusLen + 1)]byte
	_ = c.c.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(c.c, answer[:]); err != nil {
		c.t.Fatal(err)
	}
}

// works proves that the connection serves requests: it writes and reads at addr.
func (c *client) works(addr uint64) {
	c.t.Helper()
	payload := patterned(100, addr+uint64(time.Now().UnixNano()))
	c.send(writeRequest(addr, payload))
	c.expect(status(tcpframe.OK))
	c.send(readRequest(addr, 100))
	c.expect(status(tcpframe.OK), payload)
}

// hello makes the connection that of a moonpath peer that can use the given features.
func (c *client) hello(h *host, features uint16) {
	c.t.Helper()
	c.send(helloFrame(h.env.Incarnation, 1, 1, features))
	limit := uint32(0)
	if features&tcpframe.FeatureDrain != 0 {
		limit = drainLimit
	}
	c.expect(helloAnswer(tcpframe.HelloAnswer{Code: tcpframe.OK, Incarnation: h.env.Incarnation, Version: 1, Features: features & tcpframe.FeatureDrain, DrainLimit: limit}))
}

func helloFrame(incarnation uint64, newest, oldest uint8, features uint16) []byte {
	var f [tcpframe.HeaderLen]byte
	tcpframe.PutHello(&f, tcpframe.Hello{Incarnation: incarnation, MaxVersion: newest, MinVersion: oldest, Features: features})
	return f[:]
}

func helloAnswer(a tcpframe.HelloAnswer) []byte {
	var f [tcpframe.HelloAnswerLen]byte
	tcpframe.PutHelloAnswer(&f, a)
	return f[:]
}
