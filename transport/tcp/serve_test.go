package tcp

import (
	"bytes"
	"encoding/hex"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

var ok = status(tcpframe.OK)

// served is a host with one region and a client of it.
func served(t *testing.T, n uint64, settings ...string) (*host, *mem.Region, *client) {
	t.Helper()
	h := openHost(t, settings...)
	r := h.memory(n, true)
	return h, r, h.client()
}

func TestVersion2WritesAreConfirmedAndReadsAnswered(t *testing.T) {
	for _, n := range []int{1, 7, 24, 100, 4096, 65535, 65536, 65537, 300000, 1 << 20, 5<<20 + 3} {
		h, r, c := served(t, 8<<20)
		payload := patterned(n, uint64(n))
		c.send(writeRequest(uint64(r.At(13)), payload))
		c.expect(ok)
		if !bytes.Equal(r.Bytes()[13:13+n], payload) {
			t.Fatalf("%d bytes confirmed and not there", n)
		}
		if r.Bytes()[12] != 0 || r.Bytes()[13+n] != 0 {
			t.Fatalf("a write of %d bytes changed its neighbours", n)
		}
		c.send(readRequest(uint64(r.At(13)), uint64(n)))
		c.expect(ok, payload)
		c.c.Close()
		eventually(t, "session ends", func() bool { return len(h.tr.accept.all()) == 0 })
		if got := h.counter("", "requests_served"); got != 2 {
			t.Errorf("%d requests counted, want 2", got)
		}
		if got := h.counter("", "bytes_served"); got != 2*int64(n) {
			t.Errorf("%d bytes counted, want %d", got, 2*n)
		}
	}
}

func TestVersion1WritesAreSilentAndReadsAreRaw(t *testing.T) {
	_, r, c := served(t, 1<<20)
	payload := patterned(200000, 1)
	c.send(frame(200000, uint64(r.Addr), v1Write), payload)
	c.send(frame(200000, uint64(r.Addr), v1Read))
	c.expect(payload)
	c.expectSilence(50 * time.Millisecond)
}

func TestBothVersionsMixOnOneConnection(t *testing.T) {
	_, r, c := served(t, 4096)
	at := uint64(r.Addr)
	c.send(
		frame(3, at, v1Write), []byte("abc"),
		writeRequest(at+3, []byte("def")),
		frame(6, at, v1Read),
		readRequest(at+1, 4),
		frame(2, at+4, v1Write), []byte("XY"),
		frame(6, at, v1Read))
	c.expect(ok, []byte("abcdef"), ok, []byte("bcde"), []byte("abcdXY"))
}

func TestDirtyPaddingIsAccepted(t *testing.T) {
	_, r, c := served(t, 1<<20)
	payload := patterned(300000, 2)
	f := frame(300000, uint64(r.Addr), v2Write)
	copy(f[17:], []byte{0xde, 0xad, 0xbe, 0xef, 1, 2, 3})
	c.send(f, payload)
	c.expect(ok)
	if !bytes.Equal(r.Bytes()[:300000], payload) {
		t.Error("payload differs")
	}
}

func TestAHeaderMayComeByteByByte(t *testing.T) {
	_, r, c := served(t, 4096)
	for _, b := range writeRequest(uint64(r.Addr), []byte("hello")) {
		c.send([]byte{b})
	}
	c.expect(ok)
	for _, b := range readRequest(uint64(r.Addr), 5) {
		c.send([]byte{b})
	}
	c.expect(ok, []byte("hello"))
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// at puts the address of the test's region into a recorded request.
func at(f []byte, r *mem.Region, off uint64) []byte {
	h := tcpframe.ParseHeader(f)
	return append(frame(h.Size, uint64(r.At(off)), h.Opcode), f[tcpframe.HeaderLen:]...)
}

// TestRecordedConversations replays what published engines were recorded to say and to answer (wire spec,
// sections 11.4 to 11.6 and 11.13), with the addresses changed.
func TestRecordedConversations(t *testing.T) {
	const header = "05 00 00 00 00 00 00 00 00 10 00 00 00 7f 00 00 "
	for _, x := range []struct {
		name, request, answer string
		preset                string
	}{
		{name: "version 1 write", request: header + "01 00 00 00 00 00 00 00 68 65 6c 6c 6f"},
		{name: "version 1 read", request: header + "00 00 00 00 00 00 00 00", preset: "hello", answer: "68 65 6c 6c 6f"},
		{name: "version 2 write", request: header + "81 00 00 00 00 00 00 00 68 65 6c 6c 6f", answer: "00 00 00 00 56 54 43 4d"},
		{name: "version 2 read", request: header + "80 00 00 00 00 00 00 00", preset: "hello", answer: "00 00 00 00 56 54 43 4d 68 65 6c 6c 6f"},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, r, c := served(t, 4096)
			copy(r.Bytes(), x.preset)
			c.send(at(unhex(t, x.request), r, 0))
			if err := c.c.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			c.expect(unhex(t, x.answer))
			c.expectEnd()
			if got := string(r.Bytes()[:5]); got != "hello" {
				t.Errorf("memory holds %q", got)
			}
		})
	}
	t.Run("three pipelined", func(t *testing.T) {
		_, r, c := served(t, 4096)
		c.send(
			at(unhex(t, "0200000000000000 00c0a93d747f0000 8100000000000000 6162"), r, 0),
			at(unhex(t, "0200000000000000 02c0a93d747f0000 8100000000000000 6364"), r, 2),
			at(unhex(t, "0400000000000000 00c0a93d747f0000 8000000000000000"), r, 0))
		c.expect(unhex(t, "00000000 5654434d 00000000 5654434d 00000000 5654434d 61626364"))
	})
	t.Run("the third of four rejected", func(t *testing.T) {
		_, r, c := served(t, 4096)
		copy(r.Bytes(), "pppp")
		good := readRequest(uint64(r.Addr), 4)
		c.send(good, good, readRequest(1, 4), good)
		c.expect(unhex(t, "00000000 5654434d 70707070 00000000 5654434d 70707070 01000000 5654434d"))
		c.expectEnd()
	})
}

func TestPipelinedWritesAreAllConfirmed(t *testing.T) {
	_, r, c := served(t, 1<<20)
	const n, size = 200, 4096
	var requests [][]byte
	payload := patterned(n*size, 3)
	for i := range n {
		requests = append(requests, writeRequest(uint64(r.At(uint64(i*size))), payload[i*size:(i+1)*size]))
	}
	c.send(requests...)
	c.expect(slices.Repeat(ok, n))
	if !bytes.Equal(r.Bytes()[:n*size], payload) {
		t.Error("memory differs")
	}
}

func TestPipelinedReadsOfMixedSizesAreAnsweredInOrder(t *testing.T) {
	_, r, c := served(t, 1<<20)
	pattern(r.Bytes(), 4)
	var want []byte
	for i := range 200 {
		n := uint64(i*i*7%50000 + 1)
		off := uint64(i * 1000)
		c.send(readRequest(uint64(r.At(off)), n))
		want = slices.Concat(want, ok, r.Bytes()[off:off+n])
	}
	c.expect(want)
}

// TestPipelinedWritesAndReadsOfOnePlaceAlternate: each read shows what was written before it and nothing of what
// comes after it, however they are queued.
func TestPipelinedWritesAndReadsOfOnePlaceAlternate(t *testing.T) {
	for _, x := range []struct{ n, size int }{{200, 64}, {20, 600 << 10}} {
		_, r, c := served(t, 1<<20)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for i := range x.n {
				c.send(writeRequest(uint64(r.Addr), patterned(x.size, uint64(i))), readRequest(uint64(r.Addr), uint64(x.size)))
			}
			c.send(writeRequest(uint64(r.Addr), patterned(x.size, 1000)))
		}()
		for i := range x.n {
			c.expect(ok, ok, patterned(x.size, uint64(i)))
		}
		c.expect(ok)
		within(t, sent, "sending")
	}
}

func TestAReadDoesNotShowWhatIsWrittenNextToItLater(t *testing.T) {
	_, r, c := served(t, 1<<20)
	old := patterned(1000, 1)
	for _, off := range []uint64{1, 500, 999} { // where the write begins, within the read; or ends, before it
		for _, from := range []uint64{1000, 1000 + off, 1000 - off} {
			copy(r.Bytes()[1000:], old)
			c.send(readRequest(uint64(r.At(1000)), 1000), writeRequest(uint64(r.At(from)), patterned(1000, 2)))
			c.expect(ok, old, ok)
		}
	}
}

func TestRequestsAreAnsweredWhileOthersAreStillSent(t *testing.T) {
	_, r, c := served(t, 1<<20)
	payload := patterned(64<<10, 5)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range 64 {
			c.send(writeRequest(uint64(r.Addr), payload), readRequest(uint64(r.Addr), 64<<10))
		}
	}()
	for range 64 {
		c.expect(ok, ok, payload)
	}
	within(t, sent, "sending")
}

func TestAnswersComeWhenTheInputRunsDry(t *testing.T) {
	_, r, c := served(t, 1<<20)
	for _, part := range []int{1, 23, 24} { // with so much of the next header behind it
		next := readRequest(uint64(r.Addr), 5)
		c.send(writeRequest(uint64(r.Addr), []byte("hello")), next[:part])
		c.expect(ok)
		c.send(next[part:])
		c.expect(ok, []byte("hello"))
	}
	// The answer to the first request does not wait for the payload of the second.
	c.send(writeRequest(uint64(r.Addr), []byte("hello")), frame(900000, uint64(r.Addr), v2Write), make([]byte, 1000))
	c.expect(ok)
	c.send(make([]byte, 899000))
	c.expect(ok)
}

// TestAnEarlierAnswerDoesNotWaitForASmallPayload: a published initiator would call that a stall.
func TestAnEarlierAnswerDoesNotWaitForASmallPayload(t *testing.T) {
	_, r, c := served(t, 1<<20)
	c.send(writeRequest(uint64(r.Addr), []byte("hello")), frame(1000, uint64(r.Addr), v2Write), make([]byte, 10))
	c.expect(ok)
}

func TestAHalfClosedClientGetsAllAnswersAndThenTheEnd(t *testing.T) {
	_, r, c := served(t, 1<<20)
	payload := patterned(300000, 6)
	c.send(writeRequest(uint64(r.Addr), payload), readRequest(uint64(r.Addr), 300000), writeRequest(uint64(r.Addr), []byte("x")))
	if err := c.c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.expect(ok, ok, payload, ok)
	c.expectEnd()
}

func TestATruncatedPayloadIsNotConfirmedAndWhatCameBeforeIs(t *testing.T) {
	for _, short := range []int{0, 1, 100, 70000} {
		_, r, c := served(t, 1<<20)
		c.send(writeRequest(uint64(r.Addr), []byte("hello")), frame(100000, uint64(r.At(4096)), v2Write), bytes.Repeat([]byte{9}, short))
		if err := c.c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		c.expect(ok)
		c.expectEnd()
		if want := slices.Concat(bytes.Repeat([]byte{9}, short), []byte{0}); !bytes.Equal(r.Bytes()[4096:4096+len(want)], want) {
			t.Errorf("%d bytes of payload: memory differs", short)
		}
	}
}

func TestAClientThatOnlySendsStallsItselfAlone(t *testing.T) {
	h, r, c := served(t, 1<<20)
	stuck := make(chan struct{})
	go func() {
		defer close(stuck)
		request := readRequest(uint64(r.Addr), 1<<20)
		_ = c.c.SetWriteDeadline(time.Now().Add(patience))
		for {
			if _, err := c.c.Write(slices.Repeat(request, 1000)); err != nil {
				return
			}
		}
	}()
	// It has what the socket buffers hold in flight, and its session waits in a write.
	eventually(t, "session starts", func() bool { return h.busy() == 1 })
	other := h.client()
	for range 100 {
		other.works(uint64(r.Addr))
	}
	c.c.Close()
	within(t, stuck, "the end of the stuck client")
}

// busy counts the sessions that owe something.
func (h *host) busy() (n int) {
	for _, s := range h.tr.accept.all() {
		if s.owed.Load() {
			n++
		}
	}
	return n
}

func TestASlowReaderOfManyAnswersIsNotTakenForAStalledOne(t *testing.T) {
	_, r, c := served(t, 1<<20, "tcp.progress_timeout", "300ms")
	_ = c.c.SetReadBuffer(16 << 10)
	const n, size = 100, 200 << 10
	for range n {
		c.send(readRequest(uint64(r.Addr), size))
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	got := 0
	buf := make([]byte, 200<<10)
	_ = c.c.SetReadDeadline(time.Now().Add(patience))
	for want := n * (size + tcpframe.StatusLen); got < want; <-tick.C {
		m, err := io.ReadFull(c.c, buf[:min(len(buf), want-got)])
		if err != nil {
			t.Fatalf("%v after %d of %d bytes", err, got+m, want)
		}
		got += m
	}
}

func TestTheOpcodeNumbersAreThoseOfTheOperations(t *testing.T) {
	// The initiator makes one from the other.
	if tcpframe.OpRead != byte(xfer.Read) || tcpframe.OpWrite != byte(xfer.Write) {
		t.Error("they differ")
	}
}

// TestAPeerThatHasLeftIsRefusedWithoutACrash: it reset the connection before the runtime adopted it, and has no address.
func TestAPeerThatHasLeftIsRefusedWithoutACrash(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	file, err := accepted.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	reset(client.(*net.TCPConn))
	_, _ = accepted.Read(make([]byte, 1)) // the reset is there
	accepted.Close()
	s := newFresh(openHost(t).tr, fd)
	if err := s.adopt(); err != nil {
		t.Fatal(err)
	}
	if got := s.remote(); got != "gone" {
		t.Errorf("the peer is %q", got)
	}
	s.end()
}
