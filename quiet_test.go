package moonpath_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// poison is what a test puts into memory that belongs to it again, and what no peer sends.
const poison = 0xff

func filled(n int, value byte) []byte { return bytes.Repeat([]byte{value}, n) }

// readHeader takes one request's header from a connection.
func readHeader(c net.Conn) (tcpframe.Header, error) {
	frame := make([]byte, tcpframe.HeaderLen)
	_, err := io.ReadFull(c, frame)
	return tcpframe.ParseHeader(frame), err
}

// answerRead answers a read with a payload of one value.
func answerRead(c net.Conn, h tcpframe.Header, value byte) error {
	frame := make([]byte, tcpframe.StatusLen)
	tcpframe.PutStatus(frame, tcpframe.OK)
	_, err := c.Write(append(frame, filled(int(h.Size), value)...))
	return err
}

// The peer answers a read after the caller has given up and uses the memory for something else.
func TestCanceledReadLeavesMemoryAlone(t *testing.T) {
	asked, late := make(chan struct{}), make(chan struct{})
	var first sync.Once
	peer := newRawPeer(t, func(c net.Conn) {
		for {
			h, err := readHeader(c)
			if err != nil {
				return
			}
			first.Do(func() {
				close(asked)
				<-late
			})
			if answerRead(c, h, 0x11) != nil {
				return
			}
		}
	})
	e := openEngine(t, func(o *moonpath.Options) { o.Settings = map[string]string{"tcp.lanes": "1"} })
	memory := alloc(t, e, 2*4096)
	id := openName(t, e, peer.name)

	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	err := e.Read(ctx, id, memory.At(0), rawMemory, 4096)
	requireFault(t, err, xfer.Interrupted)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error does not say why: %v", err)
	}
	copy(memory.Bytes(), filled(4096, poison))
	close(late)

	// Answers come in order on one connection: when this one is there, the late one is, too.
	if err := e.Read(t.Context(), id, memory.At(4096), rawMemory, 4096); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(memory.Bytes()[4096:], filled(4096, 0x11)) {
		t.Error("the second read has wrong bytes")
	}
	if !bytes.Equal(memory.Bytes()[:4096], filled(4096, poison)) {
		t.Error("the answer to the canceled read was written into memory that Read had given back")
	}
	if n := peer.connections.Load(); n != 1 {
		t.Errorf("%d connections, so the late answer proves nothing", n)
	}
}

// The peer takes the payload of a write after the caller has given up and uses the memory for something else.
func TestCanceledWriteLeavesMemoryAlone(t *testing.T) {
	const length = 16 << 20
	begun, late := make(chan struct{}, 16), make(chan struct{})
	received := make(chan []byte, 16) // of each connection, to its end
	peer := newRawPeer(t, func(c net.Conn) {
		if _, err := readHeader(c); err == nil {
			begun <- struct{}{}
		}
		<-late
		rest, _ := io.ReadAll(c) // a reset ends it, too
		received <- rest
	})
	e := openEngine(t, nil)
	memory := alloc(t, e, length)
	copy(memory.Bytes(), filled(length, 0x11))
	id := openName(t, e, peer.name)

	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	start := time.Now()
	err := e.Write(ctx, id, memory.At(0), rawMemory, length)
	requireFault(t, err, xfer.Interrupted)
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("Write returned %v after it was canceled", took)
	}
	var f *moonpath.Fault
	if errors.As(err, &f) && f.Remote != xfer.Unknown {
		t.Errorf("the peer's memory is said to be %v", f.Remote)
	}
	copy(memory.Bytes(), filled(length, poison))
	close(late)
	if err := e.Close(); err != nil { // ends the connections, and with them what the peer reads
		t.Error(err)
	}
	for range peer.connections.Load() {
		if rest := <-received; bytes.IndexByte(rest, poison) >= 0 {
			t.Error("Write had given the memory back, and its new content was sent")
		}
	}
}

// Cancellations at random moments, with real engines at both ends.
func TestMemoryIsQuietAfterEveryCancellation(t *testing.T) {
	const length = 1 << 20
	for _, path := range []string{"local", "tcp"} {
		t.Run(path, func(t *testing.T) {
			target, e := openEngine(t, nil), openEngine(t, nil)
			there, here := alloc(t, target, length), alloc(t, e, 2*length)
			copy(there.Bytes(), filled(length, 0x11))
			id, pin, b, barrier := open(t, e, target), pinned(t, e, path), newBatch(t, e, 8), newBatch(t, e, 8)
			requests := func(off uint64) []moonpath.Request {
				rs := rows(moonpath.OpRead, pin, here, id, there, 8, length/8)
				for i := range rs {
					rs[i].Local += moonpath.Addr(off)
				}
				return rs
			}
			canceled := 0
			for range 200 {
				submit(t, b, requests(0)...)
				timer := time.NewTimer(time.Duration(rand.IntN(400)) * time.Microsecond)
				<-timer.C
				b.Cancel()
				if b.Wait(t.Context()) != nil {
					canceled++
				}
				copy(here.Bytes()[:length], filled(length, poison))
				transfer(t, barrier, requests(length)...)
				if !bytes.Equal(here.Bytes()[:length], filled(length, poison)) {
					t.Fatal("memory was written after the batch had ended")
				}
			}
			if path == "tcp" && canceled == 0 {
				t.Error("no cancellation came in time, so nothing was proved")
			}
		})
	}
}
