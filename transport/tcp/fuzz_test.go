package tcp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
)

// FuzzSession throws bytes at a served connection. Addresses near the region of the target are mapped to it, so
// that requests are executed, too. Whatever comes, the session ends with its input, every byte of its answer
// is one that the protocol allows, and memory outside the region is neither read nor written.
func FuzzSession(f *testing.F) {
	h := openHost(f)
	m, err := mem.Map(3*fuzzLen, true)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { m.Free() })
	region := h.register(mem.Spec{Addr: mem.AddrOf(m.Bytes()) + fuzzLen, Len: fuzzLen, Remote: true})[0]

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { l.Close() })

	hello := helloFrame(fuzzIncarnation, 1, 1, tcpframe.FeatureDrain)
	for _, seed := range [][]byte{
		nil, hello[:5],
		slices.Concat(frame(5, fuzzBase, v1Write), []byte("hello"), frame(5, fuzzBase, v1Read)),
		slices.Concat(frame(5, fuzzBase, v2Write), []byte("hello"), frame(5, fuzzBase, v2Read)),
		slices.Concat(frame(2, fuzzBase, v2Write), []byte("ab"), frame(2, fuzzBase+2, v2Write), []byte("cd"), frame(4, fuzzBase, v2Read)),
		slices.Concat(frame(4, fuzzBase, v2Read), frame(4, 1, v2Read), frame(4, fuzzBase, v2Read)),
		slices.Concat(hello, frame(9, 1, v2Write), []byte("discarded"), frame(0, fuzzBase, v2Read), frame(4, fuzzBase, 0xff), frame(4, fuzzBase, v2Read), hello),
		helloFrame(fuzzIncarnation+1, 1, 1, 1), helloFrame(fuzzIncarnation, 9, 7, 1),
		frame(fuzzLen, fuzzBase+1, v2Read), frame(1, fuzzBase-1, v2Write), frame(16, 1<<64-8, v2Write), frame(1<<63, fuzzBase, v2Write), frame(300000, fuzzBase, v2Write),
		[]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		slices.Concat(frame(fuzzLen, fuzzBase, v1Read), frame(fuzzLen, fuzzBase, v2Read), frame(fuzzLen, fuzzBase, v2Write), make([]byte, fuzzLen/2)),
	} {
		f.Add(seed, uint16(0))
		f.Add(seed, uint16(7))
	}
	f.Fuzz(func(t *testing.T, input []byte, cut uint16) {
		in := relocate(h, region, input)
		c := serve(t, h, l)
		_ = c.SetDeadline(time.Now().Add(patience))
		go func() {
			for rest := in; len(rest) > 0; {
				n := len(rest)
				if cut > 0 {
					n = min(n, int(cut))
				}
				if _, err := c.Write(rest[:n]); err != nil {
					return
				}
				rest = rest[n:]
			}
			_ = c.CloseWrite()
		}()
		answer, err := io.ReadAll(c)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the session does not end with its input")
		}
		checkAnswer(t, in, answer)
		for i, b := range m.Bytes() {
			if (i < fuzzLen || i >= 2*fuzzLen) && b != 0 {
				t.Fatalf("byte %d outside of the region was written", i-fuzzLen)
			}
		}
	})
}

const (
	fuzzLen         = 4096
	fuzzBase        = 0x7f0000001000
	fuzzIncarnation = 0x0123456789abcdef
)

// serve starts a session and returns the other end of its connection. The session ends that by a reset, so that
// the kernel does not remember some ten thousand closed connections.
func serve(t *testing.T, h *host, l net.Listener) *net.TCPConn {
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	file, err := accepted.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := newFresh(h.tr, fd)
	if err = s.adopt(); err == nil {
		err = s.conn.SetLinger(0)
	}
	if err != nil {
		t.Fatal(err)
	}
	go s.run()
	return c.(*net.TCPConn)
}

// relocate turns fuzzBase and fuzzIncarnation, where a header may have them, into what is valid in this process.
func relocate(h *host, r *mem.Region, in []byte) []byte {
	var base, own [8]byte
	out := bytes.Clone(in)
	for i := 0; i+tcpframe.HeaderLen <= len(out); i++ {
		head := tcpframe.ParseHeader(out[i:])
		switch {
		case head.Addr-fuzzBase+fuzzLen < 3*fuzzLen:
			copy(base[:], frame(0, uint64(r.Addr)+head.Addr-fuzzBase, 0)[8:16])
			copy(out[i+8:], base[:])
			i += 15
		case head.Addr == fuzzIncarnation:
			copy(own[:], frame(0, h.env.Incarnation, 0)[8:16])
			copy(out[i+8:], own[:])
			i += 15
		}
	}
	return out
}

// checkAnswer walks through the requests as the protocol reads them. What it cannot follow any more, because
// the session ended, must not be answered. The end of the answer may be missing.
func checkAnswer(t *testing.T, in, answer []byte) {
	first, greeted, drains := true, false, false
	for len(in) >= tcpframe.HeaderLen && len(answer) > 0 {
		h := tcpframe.ParseHeader(in)
		op := h.Opcode &^ tcpframe.OpV2
		v2 := h.Opcode != op
		if first && h.Opcode == tcpframe.OpHello {
			if _, err := tcpframe.ParseHello(in); err == nil {
				if a, err := tcpframe.ParseHelloAnswer(answer); err == nil && a.Code == tcpframe.OK {
					in, answer = in[tcpframe.HeaderLen:], answer[tcpframe.HelloAnswerLen:]
					first, greeted, drains = false, true, a.Features != 0
					continue
				}
				if len(answer) > tcpframe.HelloAnswerLen { // refused, or cut off
					t.Fatalf("%d bytes in answer to a hello that was refused", len(answer))
				}
				return
			}
		}
		in, first = in[tcpframe.HeaderLen:], false
		code := tcpframe.OK
		if v2 {
			if len(answer) < tcpframe.StatusLen {
				return
			}
			var ok bool
			if code, ok = tcpframe.ParseStatus(answer); !ok || code > 1 && !greeted {
				t.Fatalf("no status frame: % x", answer[:tcpframe.StatusLen])
			}
			answer = answer[tcpframe.StatusLen:]
		}
		switch {
		case code != tcpframe.OK && !drains:
			if len(answer) > 0 {
				t.Fatalf("%d bytes after a rejection", len(answer))
			}
			return
		case op == tcpframe.OpWrite:
			if h.Size > uint64(len(in)) {
				if v2 && code == tcpframe.OK || len(answer) > 0 {
					t.Fatal("a payload that did not come was answered")
				}
				return
			}
			in = in[h.Size:]
		case code == tcpframe.OK && op == tcpframe.OpRead:
			if h.Size > fuzzLen {
				t.Fatalf("a read of %d bytes was answered", h.Size)
			}
			answer = answer[min(uint64(len(answer)), h.Size):]
		case !v2:
			t.Fatalf("opcode %#x was answered", h.Opcode)
		}
	}
	if len(answer) > 0 {
		t.Fatalf("%d bytes that nobody asked for", len(answer))
	}
}
