package moonpath_test

import (
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/transport/fault"
	"github.com/moonpath-io/moonpath/xfer"
)

// freezeLimit is what R-LIV-1 allows, with default settings.
const freezeLimit = 5 * time.Second

// TestR_LIV_1_RequestsToASilentPeerEndInTime has default settings, and a peer that is frozen, or cut off with both of its
// ports. What is under way ends in time, and so does what is asked for afterwards.
func TestR_LIV_1_RequestsToASilentPeerEndInTime(t *testing.T) {
	for name, c := range map[string]struct {
		requests int
		silence  func(*testing.T, *peerProcess) (name string, begin, end func())
	}{
		"frozen": {2000, func(t *testing.T, p *peerProcess) (string, func(), func()) {
			return p.Name, func() { p.freeze(t) }, func() { p.thaw(t) }
		}},
		"cut off": {4, func(t *testing.T, p *peerProcess) (string, func(), func()) {
			plan, err := fault.NewPlan(1)
			if err != nil {
				t.Fatal(err)
			}
			control, err := fault.Listen(p.Name, plan)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { control.Close() })
			front, err := fault.OpenFront(t.Context(), control.Addr().String(), plan, fault.FrontOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { front.Close() })
			return front.Name(), plan.Stall, plan.Resume
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPeer(t, mixedBytes)
			open, begin, end := c.silence(t, p)
			e := openEngine(t, nil)
			here, id := alloc(t, e, mixedBytes), openName(t, e, open)
			requests := mixed(here, id, p.Addr, c.requests)
			f := startTraffic(t, e, requests)
			start := time.Now()
			begin()
			defer end()
			err := <-f.ended
			took := time.Since(start)
			requireFault(t, err, xfer.Deadline)
			requireEnds(t, f.batch, xfer.Deadline)
			t.Logf("under way: %v, %v", took, err)
			if took > freezeLimit {
				t.Errorf("requests under way ended %v after the peer was %s", took, name)
			}
			start = time.Now()
			err = once(f.batch, requests)
			took = time.Since(start)
			t.Logf("new: %v, %v", took, err)
			requireFault(t, err, xfer.Deadline)
			if took > freezeLimit {
				t.Errorf("requests to a peer that was %s ended after %v", name, took)
			}
			end()
			eventually(t, freezeLimit, "the peer is reached again", func() bool {
				return e.Read(t.Context(), id, here.At(0), p.Addr, 1) == nil
			})
		})
	}
}
