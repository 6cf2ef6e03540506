package moonpath_test

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/transport/fault"
	"github.com/moonpath-io/moonpath/xfer"
)

// TestR_BAT_1_MemoryIsQuietAfterEveryEnd makes batches end in every way, at random moments, while connections are cut and
// stand still at random, too. The moment one has ended its memory is poisoned: nothing may write there any more, and no
// poison may reach the peer, whose memory is mapped here.
func TestR_BAT_1_MemoryIsQuietAfterEveryEnd(t *testing.T) {
	const submitters, requests, block = 4, 8, 24 << 10
	const size = submitters * requests * block
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	p := startPeer(t, size)
	front := openFront(t, p.Name, fault.FrontOptions{})
	e := openEngine(t, withSettings(impatient))
	here, id := alloc(t, e, size), openName(t, e, front.Name())
	until := time.Now().Add(3 * time.Second)
	var chaos, all sync.WaitGroup
	chaos.Go(func() { disturb(front, rand.New(rand.NewPCG(seed, 100)), until) })
	ends := make([][xfer.Failed + 1]int, submitters)
	for part := range submitters {
		lo := part * requests * block
		local, remote := here.Bytes()[lo:][:requests*block], p.memory[lo:][:requests*block]
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(part)))
			for time.Now().Before(until) {
				var rs [requests]moonpath.Request
				for i := range rs {
					off := lo + i*block
					rs[i] = moonpath.Request{Op: moonpath.Op(r.IntN(2)), Local: here.At(uint64(off)), Len: 1 + r.Uint64N(block), Target: id, Remote: p.Addr + uint64(off)}
				}
				copy(local, filled(len(local), byte(r.IntN(poison))))
				s, ok := endAtRandom(t, e, r, rs[:])
				copy(local, filled(len(local), poison))
				if !ok {
					return
				}
				for i := range s {
					ends[part][s[i].State]++
				}
				<-time.After(time.Duration(r.IntN(3)) * time.Millisecond) // for what should not come
				if !bytes.Equal(local, filled(len(local), poison)) {
					t.Errorf("memory was written after its batch had ended: %+v", s)
					return
				}
				if bytes.IndexByte(remote, poison) >= 0 {
					t.Errorf("memory was sent after its batch had ended: %+v", s)
					return
				}
			}
		})
	}
	all.Wait()
	chaos.Wait()
	var sum [xfer.Failed + 1]int
	for _, part := range ends {
		for state, n := range part {
			sum[state] += n
		}
	}
	t.Logf("completed %d, failed %d, canceled %d, timed out %d", sum[xfer.Completed], sum[xfer.Failed], sum[xfer.Canceled], sum[xfer.Timeout])
	for _, state := range []xfer.State{xfer.Completed, xfer.Canceled, xfer.Timeout} {
		if sum[state] == 0 {
			t.Errorf("no request was %v", state)
		}
	}
}

// endAtRandom makes a batch that is left alone, canceled, closed or has a deadline.
func endAtRandom(t *testing.T, e *moonpath.Engine, r *rand.Rand, rs []moonpath.Request) (ends []moonpath.Status, ok bool) {
	o := moonpath.BatchOptions{Capacity: len(rs)}
	soon := time.Duration(r.IntN(1000)) * time.Microsecond
	how := r.IntN(4)
	if how == 0 {
		o.Deadline = soon + time.Microsecond
	}
	b, err := e.NewBatch(o)
	if err != nil {
		t.Error(err)
		return nil, false
	}
	defer b.Close()
	if _, err := b.Submit(t.Context(), rs); err != nil {
		t.Error(err)
		return nil, false
	}
	switch how {
	case 1:
		<-time.After(soon)
		b.Cancel()
	case 2:
		<-time.After(soon)
		if err := b.Close(); err != nil { // which says nothing about its tasks
			t.Error(err)
		}
		return nil, true
	}
	_ = b.Wait(t.Context()) // what became of each is in its status
	for i := range rs {
		s, err := b.Status(i)
		if err != nil || !s.State.Terminal() {
			t.Errorf("request %d: %+v, %v", i, s, err)
			return nil, false
		}
		ends = append(ends, s)
	}
	return ends, true
}

// disturb cuts and stalls the connections to a peer.
func disturb(f *fault.Front, r *rand.Rand, until time.Time) {
	for time.Now().Before(until) {
		<-time.After(time.Duration(r.IntN(20)) * time.Millisecond)
		switch r.IntN(3) {
		case 0:
			f.Cut(fault.Reset)
		case 1:
			f.Cut(fault.Finish)
		case 2:
			f.Stall()
			<-time.After(time.Duration(r.IntN(30)) * time.Millisecond)
			f.Resume()
		}
	}
}
