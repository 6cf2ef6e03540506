package moonpath_test

import (
	"bytes"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

// TestR_TCP_1_AStoppedPeerCompletesNothing stops the process that has to store the bytes: its kernel takes them, and
// none of the writes may complete before the process has gone on.
func TestR_TCP_1_AStoppedPeerCompletesNothing(t *testing.T) {
	const block, count = 4096, 256
	p := startPeer(t, block*count)
	e := openEngine(t, nil)
	here, id := alloc(t, e, block*count), openName(t, e, p.Name)
	fill(here.Bytes(), 3)
	requests := make([]moonpath.Request, count)
	for i := range requests {
		off := uint64(i) * block
		requests[i] = moonpath.Request{Op: moonpath.OpWrite, Local: here.At(off), Len: block, Target: id, Remote: p.Addr + off}
	}
	b, first := newBatch(t, e, count), newBatch(t, e, 1)
	transfer(t, first, requests[0])
	p.freeze(t)
	submit(t, b, requests...)
	<-time.After(300 * time.Millisecond) // nothing tells that nothing happens
	for i := range count {
		if s, err := b.Status(i); err != nil || s.State != xfer.Waiting || s.Bytes != 0 {
			t.Fatalf("request %d of a peer that is stopped: %+v, %v", i, s, err)
		}
	}
	if !bytes.Equal(p.memory[block:], make([]byte, block*(count-1))) {
		t.Error("the peer has stored bytes while it was stopped, so that this test shows nothing")
	}
	p.thaw(t)
	if err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(p.memory, here.Bytes()) {
		t.Error("completed writes are not in the peer's memory")
	}
}

// TestR_TCP_1_NoCompletedWriteIsTorn makes ten thousand writes of random sizes, several at a time, and looks at the
// peer's memory, which is mapped here, in the moment in which each is said to have completed.
func TestR_TCP_1_NoCompletedWriteIsTorn(t *testing.T) {
	const submitters, each, most = 16, 625, 64 << 10
	p := startPeer(t, submitters*most)
	e := openEngine(t, nil)
	here, id := alloc(t, e, submitters*most), openName(t, e, p.Name)
	var all sync.WaitGroup
	for part := range uint64(submitters) {
		b := newBatch(t, e, 1)
		all.Go(func() {
			r := rand.New(rand.NewPCG(part, 1))
			local, remote := here.Bytes()[part*most:][:most], p.memory[part*most:][:most]
			for round := range each {
				n := 1 + r.Uint64N(1<<(1+r.Uint64N(16))) // as many small ones as large ones
				fill(local[:n], byte(round))
				if err := once(b, []moonpath.Request{{Op: moonpath.OpWrite, Local: here.At(part * most), Len: n, Target: id, Remote: p.Addr + part*most}}); err != nil {
					t.Error(err)
					return
				}
				if !bytes.Equal(local[:n], remote[:n]) {
					t.Errorf("a write of %d bytes has completed, and not all of it is there", n)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestR_BAT_2_WaitingWakesUpSoon measures the time from the moment in which a write is in the peer's memory, or earlier,
// to the return of Wait.
func TestR_BAT_2_WaitingWakesUpSoon(t *testing.T) {
	const rounds = 200
	begun := make(chan time.Time, 1)
	e := openEngine(t, nil)
	peer := newRawPeer(t, answerAndTell(begun))
	t.Cleanup(peer.close)
	here, id, b := alloc(t, e, 4096), openName(t, e, peer.name), newBatch(t, e, 1)
	var took []time.Duration
	for range rounds {
		submit(t, b, moonpath.Request{Op: moonpath.OpRead, Local: here.At(0), Len: 4096, Target: id, Remote: rawMemory})
		if err := b.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(<-begun))
	}
	slices.Sort(took)
	t.Logf("from before the answer is sent to the return of Wait: median %v, p99 %v", took[rounds/2], took[rounds*99/100])
	if median := took[rounds/2]; median > 5*time.Millisecond {
		t.Errorf("half of the waits return more than %v after the answer was sent", median)
	}
}

// answerAndTell answers every read, a moment after it has come, and says when.
func answerAndTell(begun chan<- time.Time) func(net.Conn) {
	return func(c net.Conn) {
		for {
			h, err := readHeader(c)
			if err != nil {
				return
			}
			<-time.After(time.Millisecond) // so that Wait waits
			begun <- time.Now()
			if answerRead(c, h, 0x11) != nil {
				return
			}
		}
	}
}
