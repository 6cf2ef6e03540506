package moonpath_test

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/wire/segjson"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// lie is a data port that does not keep to the protocol, with what a request to it ends as.
type lie struct {
	serve func(net.Conn)
	shape func(*segjson.Descriptor) // of the description; may be nil
	ops   []moonpath.Op
	codes []moonpath.Code // none: the request completes
}

var bothOps = []moonpath.Op{moonpath.OpWrite, moonpath.OpRead}

// perRequest serves requests with what answer sends after the header and the payload, until that says that it is over.
func perRequest(answer func(net.Conn, tcpframe.Header) bool) func(net.Conn) {
	return func(c net.Conn) {
		for {
			h, err := readHeader(c)
			if err != nil {
				return
			}
			if h.Opcode&^tcpframe.OpV2 == tcpframe.OpWrite {
				if _, err := io.CopyN(io.Discard, c, int64(h.Size)); err != nil {
					return
				}
			}
			if !answer(c, h) {
				return
			}
		}
	}
}

// honestly is the right answer, followed by more.
func honestly(c net.Conn, h tcpframe.Header, more ...byte) bool {
	frame := make([]byte, tcpframe.StatusLen)
	tcpframe.PutStatus(frame, tcpframe.OK)
	if h.Opcode&^tcpframe.OpV2 == tcpframe.OpRead {
		frame = append(frame, filled(int(h.Size), 0x11)...)
	}
	_, err := c.Write(append(frame, more...))
	return err == nil
}

func silently(c net.Conn) bool {
	_, _ = io.Copy(io.Discard, c)
	return false
}

var lies = map[string]lie{
	"a status with another magic": {ops: bothOps, codes: []moonpath.Code{xfer.BadProtocol}, serve: perRequest(func(c net.Conn, h tcpframe.Header) bool {
		_, err := c.Write(append([]byte("HTTP/1.1"), filled(int(h.Size), 0x11)...))
		return err == nil
	})},
	"a second status": {ops: bothOps, serve: perRequest(func(c net.Conn, h tcpframe.Header) bool { // the first one counts
		extra := make([]byte, tcpframe.StatusLen)
		tcpframe.PutStatus(extra, tcpframe.OK)
		return honestly(c, h, extra...)
	})},
	"more bytes than were asked for": {ops: bothOps, serve: perRequest(func(c net.Conn, h tcpframe.Header) bool {
		return honestly(c, h, filled(64<<10, 0x22)...)
	})},
	"ok and then nothing": {ops: []moonpath.Op{moonpath.OpRead}, codes: []moonpath.Code{xfer.Deadline}, serve: perRequest(func(c net.Conn, h tcpframe.Header) bool {
		return honestly(c, tcpframe.Header{Opcode: tcpframe.OpV2 | tcpframe.OpWrite}) && silently(c)
	})},
	"ok, a part and the end": {ops: []moonpath.Op{moonpath.OpRead}, codes: []moonpath.Code{xfer.Socket}, serve: perRequest(func(c net.Conn, h tcpframe.Header) bool {
		h.Size /= 2
		honestly(c, h)
		return false
	})},
	"a refusal of everything, open": {ops: bothOps, codes: []moonpath.Code{xfer.Refused}, serve: serving(tcpframe.AddressRejected)},
	"nothing":                       {ops: bothOps, codes: []moonpath.Code{xfer.Deadline}, serve: func(c net.Conn) { silently(c) }},
	"the end of every connection":   {ops: bothOps, codes: []moonpath.Code{xfer.Socket}, serve: func(net.Conn) {}},
	"a half-close, then nothing": {ops: bothOps, codes: []moonpath.Code{xfer.Socket, xfer.Deadline}, serve: func(c net.Conn) {
		c.(*net.TCPConn).CloseWrite()
		silently(c)
	}},
	"an answer, then a half-close": {ops: bothOps, serve: perRequest(func(c net.Conn, h tcpframe.Header) bool {
		honestly(c, h)
		c.(*net.TCPConn).CloseWrite()
		return silently(c)
	})},
	"a port that is somebody else's now": {ops: bothOps, codes: []moonpath.Code{xfer.BadProtocol, xfer.Socket}, serve: func(c net.Conn) {
		_, _ = readHeader(c)
		_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"))
	}},
	"a speaker that does not wait for requests": {ops: bothOps, codes: []moonpath.Code{xfer.BadProtocol, xfer.Socket}, serve: func(c net.Conn) {
		_, _ = c.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n"))
		silently(c)
	}},
	"a byte at a time": {ops: []moonpath.Op{moonpath.OpRead}, serve: perRequest(func(c net.Conn, h tcpframe.Header) bool {
		frame := make([]byte, tcpframe.StatusLen)
		tcpframe.PutStatus(frame, tcpframe.OK)
		for _, b := range append(frame, filled(int(h.Size), 0x11)...) {
			if _, err := c.Write([]byte{b}); err != nil {
				return false
			}
		}
		return true
	})},
	"version 1 for reads of an old peer": {ops: []moonpath.Op{moonpath.OpRead}, shape: func(d *segjson.Descriptor) { d.TCPProtoVersion = 0 }, serve: func(c net.Conn) {
		if h, err := readHeader(c); err == nil {
			_, _ = c.Write(filled(int(h.Size), 0x11))
		}
	}},
	"a part of what an old peer owes": {ops: []moonpath.Op{moonpath.OpRead}, codes: []moonpath.Code{xfer.Refused, xfer.Socket}, shape: func(d *segjson.Descriptor) { d.TCPProtoVersion = 0 }, serve: func(c net.Conn) {
		if h, err := readHeader(c); err == nil {
			_, _ = c.Write(filled(int(h.Size/2), 0x11))
		}
	}},
}

// TestAPeerThatLiesIsFoundOutInTime makes one request to each, in a batch with one to an honest peer.
func TestAPeerThatLiesIsFoundOutInTime(t *testing.T) {
	const length = 4096
	for name, l := range lies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := openEngine(t, withSettings(impatient))
			liar, honest := newRawPeer(t, l.serve), newRawPeer(t, perRequest(func(c net.Conn, h tcpframe.Header) bool { return honestly(c, h) }))
			liar.announce(l.shape)
			t.Cleanup(liar.close)
			t.Cleanup(honest.close)
			here := alloc(t, e, 3*length)
			good := moonpath.Request{Op: moonpath.OpRead, Local: here.At(0), Len: length, Target: openName(t, e, honest.name), Remote: rawMemory}
			b := newBatch(t, e, 2)
			for _, op := range l.ops {
				copy(here.Bytes(), filled(3*length, poison))
				bad := moonpath.Request{Op: op, Local: here.At(length), Len: length, Target: openName(t, e, liar.name), Remote: rawMemory}
				start := time.Now()
				submit(t, b, good, bad)
				err := b.Wait(t.Context())
				if took := time.Since(start); took > impatientLimit {
					t.Errorf("%v took %v", op, took)
				}
				if s, _ := b.Status(0); s.State != xfer.Completed || !bytes.Equal(here.Bytes()[:length], filled(length, 0x11)) {
					t.Errorf("the request to another peer ended as %+v", s)
				}
				if !bytes.Equal(here.Bytes()[2*length:], filled(length, poison)) {
					t.Errorf("%v: memory behind that of the request was written", op)
				}
				if len(l.codes) == 0 {
					if err != nil {
						t.Errorf("%v: %v", op, err)
					} else if op == moonpath.OpRead && !bytes.Equal(here.Bytes()[length:2*length], filled(length, 0x11)) {
						t.Errorf("%v completed with other bytes than those of the answer", op)
					}
					continue
				}
				requireOneOf(t, err, l.codes...)
			}
		})
	}
}

// requireOneOf is requireFault for an end that depends on what comes first.
func requireOneOf(t *testing.T, err error, codes ...moonpath.Code) {
	t.Helper()
	for _, code := range codes {
		if xfer.CodeOf(err) == code {
			requireFault(t, err, code)
			return
		}
	}
	t.Errorf("got %v, want one of %v", err, codes)
}
