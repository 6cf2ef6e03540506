package moonpath_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/transport/fault"
	"github.com/moonpath-io/moonpath/xfer"
)

// killLimit is what R-LIV-1 allows, with default settings.
const killLimit = 2 * time.Second

// impatient makes a peer that stands still known soon. impatientLimit is how long a request may take then: nothing moves
// for a while, new connections are tried, perhaps one lane after the other, and the control port is asked; and some time
// for a busy machine.
var impatient = map[string]string{"tcp.status_timeout": "400ms", "tcp.connect_timeout": "600ms"}

const impatientLimit = 4*(400*time.Millisecond+600*time.Millisecond) + 2*time.Second

func withSettings(s map[string]string) func(*moonpath.Options) {
	return func(o *moonpath.Options) { o.Settings = s }
}

// mixedBytes is the memory that mixed needs at both ends.
const mixedBytes = 8 * 512 << 10

// mixed is count requests of several sizes and both operations to one peer.
func mixed(here *moonpath.Memory, id moonpath.SegmentID, remote uint64, count int) []moonpath.Request {
	rs := make([]moonpath.Request, count)
	for i := range rs {
		length := []uint64{512, 4096, 64 << 10, 300 << 10}[i%4]
		off := uint64(i%8) * (512 << 10)
		rs[i] = moonpath.Request{Op: moonpath.Op(i / 4 & 1), Local: here.At(off), Len: length, Target: id, Remote: remote + off}
	}
	return rs
}

// traffic is a batch that is made again and again until it fails, or until it is told to stop.
type traffic struct {
	batch *moonpath.Batch
	stop  chan struct{}
	ended chan error // nil if it was told to
}

// startTraffic returns when some rounds are done.
func startTraffic(t testing.TB, e *moonpath.Engine, rs []moonpath.Request) *traffic {
	t.Helper()
	f, began := &traffic{batch: newBatch(t, e, len(rs)), stop: make(chan struct{}), ended: make(chan error, 1)}, make(chan struct{})
	go func() {
		for round := 0; ; round++ {
			select {
			case <-f.stop:
				f.ended <- nil
				return
			default:
			}
			if round == 3 {
				close(began)
			}
			if err := once(f.batch, rs); err != nil {
				f.ended <- err
				return
			}
		}
	}()
	select {
	case <-began:
	case err := <-f.ended:
		t.Fatalf("the traffic does not run: %v", err)
	}
	return f
}

// once may be called from any goroutine.
func once(b *moonpath.Batch, rs []moonpath.Request) error {
	if err := b.Reset(); err != nil {
		return err
	}
	if _, err := b.Submit(context.Background(), rs); err != nil {
		return err
	}
	return b.Wait(context.Background())
}

// requireEnds checks each task of a batch whose peer was lost: it has ended, and where a write may still happen the
// status says so.
func requireEnds(t *testing.T, b *moonpath.Batch, codes ...moonpath.Code) {
	t.Helper()
	failed := 0
	for i := range b.Len() {
		s, err := b.Status(i)
		switch {
		case err != nil || !s.State.Terminal():
			t.Errorf("request %d: %+v, %v", i, s, err)
		case s.State == xfer.Failed:
			failed++
			if code := xfer.CodeOf(s.Err); !slices.Contains(codes, code) {
				t.Errorf("request %d: %v, want one of %v", i, s.Err, codes)
			}
		}
	}
	if failed == 0 {
		t.Error("no request failed")
	}
}

// TestR_LIV_1_RequestsToAKilledPeerEndAtOnce has default settings.
func TestR_LIV_1_RequestsToAKilledPeerEndAtOnce(t *testing.T) {
	p := startPeer(t, mixedBytes)
	e := openEngine(t, nil)
	here, id := alloc(t, e, mixedBytes), openName(t, e, p.Name)
	requests := mixed(here, id, p.Addr, 1000)
	f := startTraffic(t, e, requests)
	start := time.Now()
	p.kill()
	requireFault(t, <-f.ended, xfer.Socket)
	if took := time.Since(start); took > killLimit {
		t.Errorf("requests under way ended %v after the peer was killed", took)
	}
	requireEnds(t, f.batch, xfer.Socket)
	start = time.Now()
	err := once(f.batch, requests)
	requireFault(t, err, xfer.Socket)
	if took := time.Since(start); took > killLimit {
		t.Errorf("requests to a peer that was killed ended after %v", took)
	}
	if f := err.(*moonpath.Fault); f.MustChange() != xfer.SidePeer {
		t.Errorf("%v has to change something: %v", f.MustChange(), err)
	}
}

// hindrances make a peer stand still, which the process or the network may do.
var hindrances = map[string]struct {
	begin, end func(*testing.T, *peerProcess, *fault.Front)
}{
	"frozen": {
		func(t *testing.T, p *peerProcess, _ *fault.Front) { p.freeze(t) },
		func(t *testing.T, p *peerProcess, _ *fault.Front) { p.thaw(t) },
	},
	"cut off": { // established connections and new ones; the control port is reached all the same
		func(t *testing.T, _ *peerProcess, f *fault.Front) {
			f.Stall()
			if err := f.Swallow(); err != nil {
				t.Fatal(err)
			}
		},
		func(t *testing.T, _ *peerProcess, f *fault.Front) {
			f.Resume()
			if err := f.Accept(); err != nil {
				t.Fatal(err)
			}
		},
	},
	"connected to nobody": { // new connections are accepted, and nothing moves
		func(_ *testing.T, _ *peerProcess, f *fault.Front) { f.Stall() },
		func(_ *testing.T, _ *peerProcess, f *fault.Front) { f.Resume() },
	},
}

// openFront puts a proxy in front of a peer.
func openFront(t testing.TB, name string, o fault.FrontOptions) *fault.Front {
	t.Helper()
	plan, err := fault.NewPlan(1)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fault.OpenFront(t.Context(), name, plan, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestR_BAT_1_NothingIsWrittenByAPeerThatStoodStill ends requests to a peer that does not move, uses their memory for
// something else, and lets the peer move on: what it still executes are bytes from before, and answers go nowhere.
func TestR_BAT_1_NothingIsWrittenByAPeerThatStoodStill(t *testing.T) {
	for name, hindrance := range hindrances {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPeer(t, mixedBytes)
			front := openFront(t, p.Name, fault.FrontOptions{})
			e := openEngine(t, withSettings(impatient))
			here, id := alloc(t, e, mixedBytes), openName(t, e, front.Name())
			requests := mixed(here, id, p.Addr, 1000)
			f := startTraffic(t, e, requests)
			start := time.Now()
			hindrance.begin(t, p, front)
			requireFault(t, <-f.ended, xfer.Deadline)
			took := time.Since(start)
			t.Logf("requests ended %v after the peer was %s", took, name)
			if took > impatientLimit {
				t.Errorf("requests ended %v after the peer was %s", took, name)
			}
			requireEnds(t, f.batch, xfer.Deadline)
			unknown := 0
			for i, r := range requests {
				if s, _ := f.batch.Status(i); s.Remote == xfer.Unknown {
					unknown++
					if r.Op == moonpath.OpRead {
						t.Errorf("request %d is a read, and the peer's memory is said to be unknown", i)
					}
				}
			}
			if unknown == 0 {
				t.Error("no write has left the peer's memory unknown")
			}

			copy(here.Bytes(), filled(mixedBytes, poison))
			hindrance.end(t, p, front)
			eventually(t, 20*time.Second, "the peer is reached again", func() bool {
				return e.Read(t.Context(), id, here.At(0), p.Addr, 1) == nil
			})
			if !bytes.Equal(here.Bytes()[1:], filled(mixedBytes-1, poison)) {
				t.Error("memory of requests that had ended was written")
			}
			if bytes.IndexByte(p.memory, poison) >= 0 {
				t.Error("what was put into memory of requests that had ended was sent")
			}
			if err := once(f.batch, requests); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// TestARestartedPeerGetsNothingThatWasMeantForTheOldOne kills a peer that has requests and starts another with its name,
// its ports and the same memory at the same addresses.
func TestARestartedPeerGetsNothingThatWasMeantForTheOldOne(t *testing.T) {
	const block, count = 64 << 10, 256
	p := startPeer(t, block*count)
	front := openFront(t, p.Name, fault.FrontOptions{})
	e := openEngine(t, nil)
	here, id := alloc(t, e, block*count), openName(t, e, front.Name())
	copy(here.Bytes(), filled(block*count, poison))
	requests := make([]moonpath.Request, count)
	for i := range requests {
		off := uint64(i) * block
		requests[i] = moonpath.Request{Op: moonpath.OpWrite, Local: here.At(off), Len: block, Target: id, Remote: p.Addr + off}
	}
	b := newBatch(t, e, count)
	transfer(t, b, requests[:8]...) // all lanes and their peer are known
	front.Stall()
	submit(t, b, requests...)
	p.kill()
	clear(p.memory)
	p.restart(t)
	front.Cut(fault.Reset)
	front.Resume()
	requireFault(t, b.Wait(t.Context()), xfer.WrongPeer)
	requireEnds(t, b, xfer.WrongPeer)
	if bytes.IndexByte(p.memory, poison) >= 0 {
		t.Error("a write that was meant for the old process is in the memory of the new one")
	}
	if err := e.SyncSegmentCache(front.Name()); err != nil {
		t.Fatal(err)
	}
	transfer(t, b, requests...)
	if !bytes.Equal(p.memory, here.Bytes()) {
		t.Error("writes that were meant for the new process are not there")
	}
}

// TestARestartedPeerIsServedAgain restarts a peer several times with its name, its ports and its memory. The first batch
// after that finds it out, and the next one is served.
func TestARestartedPeerIsServedAgain(t *testing.T) {
	p := startPeer(t, mixedBytes)
	e := openEngine(t, nil)
	here, id := alloc(t, e, mixedBytes), openName(t, e, p.Name)
	requests, b := mixed(here, id, p.Addr, 100), newBatch(t, e, 100)
	for range 3 {
		f := startTraffic(t, e, requests)
		p.kill()
		requireFault(t, <-f.ended, xfer.Socket)
		p = p.restart(t)
		requireFault(t, once(b, requests), xfer.WrongPeer)
		if err := once(b, requests); err != nil {
			t.Errorf("the second batch after a restart: %v", err)
		}
	}
}
