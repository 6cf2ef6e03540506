package tcp

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// scripted is a server that reads n requests with their payloads and then answers as a test wants.
func scripted(t *testing.T, n int, answer func(c *conn, hs []tcpframe.Header)) *server {
	return listenRaw(t, func(c *conn) {
		var hs []tcpframe.Header
		for len(hs) < n {
			h, _, ok := c.header()
			if !ok {
				return
			}
			if h.Opcode == v2Write {
				if _, ok := c.payload(h.Size); !ok {
					return
				}
			}
			hs = append(hs, h)
		}
		answer(c, hs)
		c.waitEnd()
	})
}

// TestAnswersInPiecesOfAnySize: where the stream is cut means nothing.
func TestAnswersInPiecesOfAnySize(t *testing.T) {
	for _, piece := range []int{1, 2, 3, 7, 8, 9, 13, 31, 1000, 4095, 1 << 20} {
		t.Run(fmt.Sprint(piece), func(t *testing.T) {
			sizes := []uint64{1, 8, 30, 100, 5, 4096, 3, 16000}
			n := 2 * len(sizes)
			srv := scripted(t, n, func(c *conn, hs []tcpframe.Header) {
				var all []byte
				for _, h := range hs {
					all = append(all, status(tcpframe.OK)...)
					if h.Opcode == v2Read {
						all = append(all, patterned(int(h.Size), h.Addr)...)
					}
				}
				for part := range slices.Chunk(all, piece) {
					if !c.put(part) {
						return
					}
				}
			})
			h := openHost(t, "tcp.lanes", "1")
			m := h.memory(1<<20, false)
			_, s := h.dial(srv.desc(2, 0))
			var ks []*task
			for i, size := range sizes {
				ks = append(ks, read(m, uint64(i)*20000, size, remoteBase+uint64(i)), write(m, 500000, size, remoteBase+100000))
			}
			s.do(ks...)
			for _, k := range ks {
				if k.op == xfer.Read && !bytes.Equal(k.memory(), patterned(int(k.len), k.remote)) {
					t.Errorf("a read of %d bytes is wrong", k.len)
				}
			}
		})
	}
}

// TestAStatusInTwoParts: the parts come in different calls, the first one behind another status.
func TestAStatusInTwoParts(t *testing.T) {
	const incarnation = 76
	for cut := 1; cut < tcpframe.StatusLen; cut++ {
		second := make(chan struct{})
		srv := listenRaw(t, func(c *conn) {
			if !c.greet(incarnation) {
				return
			}
			for range 3 {
				c.header()
				c.payload(100)
			}
			c.put(status(tcpframe.OK), status(tcpframe.NotPermitted)[:cut])
			<-second
			c.put(status(tcpframe.NotPermitted)[cut:], status(tcpframe.OK))
			c.waitEnd()
		})
		h := openHost(t, "tcp.lanes", "1")
		m := h.memory(4096, false)
		_, s := h.dial(srv.desc(2, incarnation))
		ks := []*task{aWrite(m), aWrite(m), aWrite(m)}
		s.submit(ks...)
		s.finish(ks[0])
		l := s.route.lanes[0]
		eventually(t, "the first part is in", func() bool {
			l.recvMu.Lock()
			defer l.recvMu.Unlock()
			return l.got == uint64(cut)
		})
		close(second)
		s.finish(ks...)
		for i, want := range []xfer.Code{xfer.OK, xfer.Refused, xfer.OK} {
			if codeOf(ks[i].fault) != want {
				t.Errorf("cut at %d: request %d: %v", cut, i, ks[i].fault)
			}
		}
	}
}

// failsOnce runs one request against a peer that breaks the protocol: it has to fail with the code, and the
// next request, on a new connection, succeeds.
func failsOnce(t *testing.T, make func(m *mem.Region) *task, code xfer.Code, certainty xfer.Certainty, misbehave func(c *conn)) {
	t.Helper()
	srv := listenRaw(t, func(c *conn) {
		if c.number == 1 {
			misbehave(c)
			c.waitEnd()
			return
		}
		(&target{version: 2}).serve(c)
	})
	h := openHost(t, "tcp.lanes", "1")
	m := h.memory(8<<20, false)
	_, s := h.dial(srv.desc(2, 0))
	s.narrow()
	k := make(m)
	s.submit(k)
	s.finish(k)
	if codeOf(k.fault) != code || k.certainty != certainty {
		t.Fatalf("got %v (%v), want code %v (%v)", k.fault, k.certainty, code, certainty)
	}
	s.do(write(m, 0, 100, remoteBase), read(m, 0, 100, remoteBase))
}

// narrow gives the first lane's socket room for little, so that a request is under way for a while.
func (s *source) narrow() {
	s.t.Helper()
	l := s.route.lanes[0]
	eventually(s.t, "the lane is up", l.up.Load)
	if err := l.connection().SetWriteBuffer(32 << 10); err != nil {
		s.t.Fatal(err)
	}
}

func aWrite(m *mem.Region) *task    { return write(m, 0, 100, remoteBase) }
func aRead(m *mem.Region) *task     { return read(m, 0, 100, remoteBase) }
func aBigWrite(m *mem.Region) *task { return write(m, 0, 8<<20, remoteBase) }

func TestBytesThatAreNoStatusAreABrokenProtocol(t *testing.T) {
	for name, answer := range map[string][]byte{
		"zeros":       make([]byte, 8),
		"text":        []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"wrong magic": unhex(t, "00000000 5654434e"),
		"raw payload": patterned(100, 1),
	} {
		t.Run(name, func(t *testing.T) {
			serve := func(c *conn) {
				c.header()
				c.put(answer)
			}
			failsOnce(t, aWrite, xfer.BadProtocol, xfer.Unknown, serve)
			failsOnce(t, aRead, xfer.BadProtocol, xfer.Confirmed, serve)
		})
	}
}

func TestAnOkBeforeThePayloadIsOutIsABrokenProtocol(t *testing.T) {
	failsOnce(t, aBigWrite, xfer.BadProtocol, xfer.Unknown, func(c *conn) {
		c.header()
		c.put(status(tcpframe.OK))
		c.stand()
	})
}

func TestAnUnknownStatusIsARefusal(t *testing.T) {
	for _, code := range []uint32{1, 2, 77, 1<<32 - 1} {
		failsOnce(t, aWrite, xfer.Refused, xfer.Confirmed, func(c *conn) {
			c.header()
			c.payload(100)
			c.put(status(code))
			c.CloseWrite()
		})
	}
}

func TestUnsolicitedBytesDropTheConnectionAndNoRequest(t *testing.T) {
	for name, junk := range map[string][]byte{"a byte": {1}, "an ok": status(tcpframe.OK), "much": make([]byte, 100000)} {
		t.Run(name, func(t *testing.T) {
			g := &target{version: 2}
			srv := listenRaw(t, func(c *conn) {
				if c.number == 1 {
					g.one(c)
					c.put(junk)
					c.waitEnd()
					return
				}
				g.serve(c)
			})
			h := openHost(t, "tcp.lanes", "1")
			m := h.memory(4096, false)
			_, s := h.dial(srv.desc(2, 0))
			s.do(aWrite(m))
			eventually(t, "the connection is dropped", func() bool { return !s.route.lanes[0].up.Load() })
			for range 100 {
				s.do(aWrite(m), aRead(m))
			}
			if got := srv.accepted.Load(); got != 2 {
				t.Errorf("%d connections", got)
			}
		})
	}
}

// TestAReadThatIsConfirmedAndNotSentFails: a published target does that with memory that is not mapped.
func TestAReadThatIsConfirmedAndNotSentFails(t *testing.T) {
	for _, part := range []int{0, 1, 99} {
		for _, how := range []string{"close", "reset"} {
			t.Run(fmt.Sprintf("%d bytes, %s", part, how), func(t *testing.T) {
				srv := scripted(t, 1, func(c *conn, _ []tcpframe.Header) {
					c.put(status(tcpframe.OK), make([]byte, part))
					if how == "reset" {
						c.reset()
					}
					c.Close()
				})
				h := openHost(t, "tcp.lanes", "1")
				m := h.memory(4096, false)
				_, s := h.dial(srv.desc(2, 0))
				k := aRead(m)
				s.submit(k)
				s.finish(k)
				if codeOf(k.fault) != xfer.Socket {
					t.Fatalf("got %v", k.fault)
				}
				if got, limit := srv.accepted.Load(), int32(1+maxAttempts); got > limit {
					t.Errorf("%d connections for one request", got)
				}
			})
		}
	}
}

// TestRejectedReadsInTheMiddleLeaveTheOthersRight: a moonpath peer answers a burst of reads of many sizes, some
// of them by a rejection, so that payload does not lie where it was expected.
func TestRejectedReadsInTheMiddleLeaveTheOthersRight(t *testing.T) {
	for seed := range 40 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			const incarnation = 77
			n := 3 + seed*5
			bad := func(i int) bool { return (i*7+seed)%(2+seed%5) == 0 }
			srv := listenRaw(t, func(c *conn) {
				if !c.greet(incarnation) {
					return
				}
				var all []byte
				for i := range n {
					h, _, ok := c.header()
					if !ok {
						return
					}
					switch {
					case bad(i) && h.Opcode == v2Read:
						all = append(all, status(tcpframe.AddressRejected+uint32(i%2)*3)...)
					case h.Opcode == v2Read:
						all = append(all, status(tcpframe.OK)...)
						all = append(all, patterned(int(h.Size), h.Addr)...)
					default:
						if _, ok := c.payload(h.Size); !ok {
							return
						}
						all = append(all, status(tcpframe.OK)...)
					}
				}
				cuts := []int{len(all), 1 << 16, 1000, 77}
				for part := range slices.Chunk(all, cuts[seed%4]) {
					if !c.put(part) {
						return
					}
				}
				c.waitEnd()
			})
			h := openHost(t, "tcp.lanes", "1")
			m := h.memory(16<<20, false)
			_, s := h.dial(srv.desc(2, incarnation))
			var ks []*task
			off := uint64(0)
			for i := range n {
				size := uint64((i*i*31+seed*17)%[]int{20, 5000, 16000}[seed%3] + 1)
				k := read(m, off, size, remoteBase+uint64(i))
				if i%11 == 10 {
					k = write(m, off, size, remoteBase+uint64(i))
				}
				ks = append(ks, k)
				off += size
			}
			s.submit(ks...)
			s.finish(ks...)
			for i, k := range ks {
				switch {
				case k.op == xfer.Read && bad(i):
					if codeOf(k.fault) != xfer.Refused || k.certainty != xfer.Confirmed {
						t.Fatalf("request %d: %v (%v), want a refusal", i, k.fault, k.certainty)
					}
				case k.fault != nil:
					t.Fatalf("request %d: %v", i, k.fault)
				case k.op == xfer.Read && !bytes.Equal(k.memory(), patterned(int(k.len), k.remote)):
					t.Fatalf("request %d of %d: wrong bytes", i, n)
				}
			}
			if got := srv.accepted.Load(); got != 1 {
				t.Errorf("%d connections", got)
			}
		})
	}
}

// TestARejectionWhileThePayloadIsStillSent: a moonpath peer says no at once and drains.
func TestARejectionWhileThePayloadIsStillSent(t *testing.T) {
	const incarnation = 78
	g := &target{version: 2, incarnation: incarnation}
	bad := func(h tcpframe.Header) bool { return h.Addr >= remoteBase+32<<20 }
	srv := listenRaw(t, func(c *conn) {
		if !c.greet(incarnation) {
			return
		}
		for {
			h, _, ok := c.header()
			if !ok {
				return
			}
			code := tcpframe.OK
			if bad(h) {
				if code = tcpframe.NotPermitted; !c.put(status(code)) {
					return
				}
			}
			b, ok := c.payload(h.Size)
			if !ok {
				return
			}
			if code == tcpframe.OK {
				g.store(h.Addr, b)
				c.put(status(code))
			}
		}
	})
	h := openHost(t, "tcp.lanes", "1")
	m := h.memory(8<<20, false)
	pattern(m.Bytes(), 5)
	_, s := h.dial(srv.desc(2, incarnation))
	s.narrow()
	var good, rejected []*task
	for i := range uint64(7) {
		good = append(good, write(m, i<<20, 1<<20, remoteBase+i<<20))
		rejected = append(rejected, write(m, i<<20, 1<<20, remoteBase+32<<20+i<<20), write(m, i<<20, 10, remoteBase+40<<20))
	}
	s.submit(slices.Concat(good[:3], rejected, good[3:])...)
	s.finish(good...)
	s.finish(rejected...)
	for i, k := range good {
		if k.fault != nil || !bytes.Equal(g.load(k.remote, k.len), k.memory()) {
			t.Errorf("good request %d: %v", i, k.fault)
		}
	}
	for i, k := range rejected {
		if codeOf(k.fault) != xfer.Refused || !strings.Contains(k.fault.Error(), "not remotely accessible") {
			t.Errorf("bad request %d: %v", i, k.fault)
		}
	}
	if got := srv.accepted.Load(); got != 1 {
		t.Errorf("%d connections", got)
	}
}

// TestARejectionWhileThePayloadIsStillSentAndThenTheEnd: the peer says no and goes away, or stops, without
// taking the payload.
func TestARejectionWhileThePayloadIsStillSentAndThenTheEnd(t *testing.T) {
	for name, incarnation := range kinds {
		for how, end := range map[string]func(c *conn){
			"close":  func(c *conn) { c.Close() },
			"reset":  func(c *conn) { c.reset() },
			"stands": func(c *conn) { c.stand() },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				g := &target{version: 2, incarnation: incarnation}
				srv := listenRaw(t, func(c *conn) {
					if incarnation != 0 && !c.greet(incarnation) {
						return
					}
					for {
						h, _, ok := c.header()
						if !ok {
							return
						}
						if h.Addr < remoteBase+32<<20 {
							b, ok := c.payload(h.Size)
							if !ok {
								return
							}
							g.store(h.Addr, b)
							c.put(status(tcpframe.OK))
							continue
						}
						c.put(status(tcpframe.AddressRejected))
						end(c)
						return
					}
				})
				srv.narrow()
				h := openHost(t, "tcp.lanes", "1", "tcp.status_timeout", "1500ms")
				m := h.memory(4<<20, false)
				_, s := h.dial(srv.desc(2, incarnation))
				s.narrow()
				bad := write(m, 0, 1<<20, remoteBase+32<<20)
				good := write(m, 0, 1<<20, remoteBase)
				begin := time.Now()
				s.submit(bad, good)
				s.finish(bad, good)
				if took := time.Since(begin); incarnation == 0 && took > time.Second {
					t.Errorf("it took %v to see that the rejection ends the connection", took)
				}
				if code := codeOf(bad.fault); code != xfer.Refused && !(how == "stands" && incarnation != 0 && code == xfer.Deadline) {
					t.Errorf("the bad request: %v", bad.fault)
				}
				if good.fault != nil {
					t.Errorf("the good request: %v", good.fault)
				}
				if got := srv.accepted.Load(); how != "stands" && got > 2 {
					t.Errorf("%d connections; the refusal was known", got)
				}
			})
		}
	}
}
