package multi

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/xfer"
)

// lanes is a fake whose routes have several takers, each in a goroutine of its own, as those of real paths.
type lanes struct {
	*fake.Transport
	number int
	move   func(*transport.Chunk) fake.Answer
}

func (l *lanes) Dial(_ context.Context, _ transport.Peer, work transport.Source) (transport.Route, error) {
	r := &laneRoute{work: work, wake: make(chan struct{}, l.number), quit: make(chan struct{})}
	for range l.number {
		r.running.Go(func() { r.run(l.move) })
	}
	return r, nil
}

type laneRoute struct {
	work    transport.Source
	wake    chan struct{}
	quit    chan struct{}
	running sync.WaitGroup
}

func (r *laneRoute) run(move func(*transport.Chunk) fake.Answer) {
	var chunks [8]transport.Chunk
	var done [8]transport.Completion
	for {
		n := r.work.Take(transport.Want{Bytes: 64 << 10, Piece: 1000, Queues: transport.Set(transport.Small, transport.Bulk, transport.Suspect)}, chunks[:])
		if n == 0 {
			select {
			case <-r.wake:
				continue
			case <-r.quit:
				return
			}
		}
		if r.work.Waiting() != 0 {
			r.Kick()
		}
		for i := range chunks[:n] {
			a := move(&chunks[i])
			done[i] = transport.Completion{Ref: chunks[i].Ref, Fault: a.Fault, Remote: a.Remote}
		}
		r.work.Done(done[:n])
		r.work.Done(done[:n]) // once too often
	}
}

func (r *laneRoute) Kick() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *laneRoute) Cancel([]transport.Ref) {}

func (r *laneRoute) Quiesce(context.Context) transport.Quietness {
	close(r.quit)
	r.running.Wait()
	return transport.Quiet
}

// Many submitters write and read back bytes over three paths to three peers, with requests that fail among them,
// batches that are canceled, segments that are opened and closed and a transport that comes and goes. Each status
// must be exact, and what completed must have moved.
func TestManySubmittersAtOnce(t *testing.T) {
	const submitters, rounds, perBatch, slot = 8, 60, 24, 3000
	r := newRig(t, narrow(40))
	remote := make([]byte, submitters*perBatch*slot)
	const poison = uint64(1) << 40 // remote addresses from here on fail
	move := func(c *transport.Chunk) fake.Answer {
		if c.Remote >= poison {
			return fake.Fail(xfer.Refused, xfer.Confirmed)
		}
		far := remote[c.Remote-base:][:c.Len]
		if c.Op == xfer.Write {
			copy(far, c.Memory())
		} else {
			copy(c.Memory(), far)
		}
		return fake.Done
	}
	buffers := []segment.Buffer{{Addr: base, Len: uint64(len(remote))}}
	r.install(fake.Options{Name: "inline", Script: move, Piece: 700})
	laned := &lanes{Transport: fake.New(fake.Options{Name: "laned"}), number: 3, move: move}
	if err := r.Install(t.Context(), laned); err != nil {
		t.Fatal(err)
	}
	peers := []xfer.SegmentID{
		r.open("one", []string{"inline"}, buffers...), r.open("two", []string{"laned"}, buffers...), r.open("three", []string{"inline", "laned"}, buffers...),
	}
	pins := []xfer.Pin{xfer.NoPin, r.Pin("inline"), r.Pin("laned")}

	var locals []*mem.Region
	var batches []*Batch
	for range submitters {
		locals, batches = append(locals, r.memory(perBatch*slot)), append(batches, r.batch(perBatch))
	}
	stop := make(chan struct{})
	var around, working sync.WaitGroup
	around.Go(func() { // what else goes on in an engine
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			r.Changed()
			extra := fake.New(fake.Options{Name: "extra", Script: move, Offers: fake.Rows(fake.Refused(transport.Reason{Code: "never"}))})
			if err := r.Install(t.Context(), extra); err != nil {
				t.Error(err)
			}
			p, err := r.cache.Open(t.Context(), "one")
			if err == nil {
				_, err = p.Refresh(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
			name := fmt.Sprint("passing", i%3)
			r.dir.set(&segment.Desc{Name: name, Protocols: []string{"inline"}, Buffers: buffers})
			if p, err = r.cache.Open(t.Context(), name); err != nil {
				t.Error(err)
				continue
			}
			b := r.batch(1)
			r.submit(b, xfer.Request{Op: xfer.Write, Target: p.ID, Local: 1, Len: 1, Remote: base})
			if _, err := r.cache.Close(p.ID); err != nil {
				t.Error(err)
			}
			r.Forget(p.ID)
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			if _, err := r.Uninstall(t.Context(), "extra"); err != nil {
				t.Error(err)
			}
		}
	})
	for s := range submitters {
		working.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(s)))
			local, b := locals[s], batches[s]
			defer b.Close()
			want := make([]byte, perBatch*slot)
			for round := range rounds {
				op := xfer.Op(1 - round%2) // write, then read back
				if op == xfer.Write {
					for i := range want {
						want[i] = byte(random.Uint32())
					}
					copy(local.Bytes(), want)
				} else {
					clear(local.Bytes())
				}
				rs := make([]xfer.Request, perBatch)
				bad := random.IntN(perBatch)
				for i := range rs {
					off := uint64(i * slot)
					n := uint64(1 + random.IntN(slot))
					if op == xfer.Read {
						n = slot
					}
					k := random.IntN(len(peers))
					rs[i] = xfer.Request{Op: op, Local: local.At(off), Len: n, Target: peers[k], Remote: base + uint64(s*perBatch*slot) + off}
					if k == 2 {
						rs[i].Pin = pins[random.IntN(len(pins))]
					}
					if op == xfer.Write {
						rs[i].Len = slot
					}
				}
				rs[bad].Remote += poison
				if n, err := b.Submit(t.Context(), rs); n != perBatch || err != nil {
					t.Errorf("%d accepted, %v", n, err)
					return
				}
				canceled := round%10 == 9
				if canceled {
					b.Cancel()
				}
				_ = b.Wait(t.Context())
				for i := range rs {
					st, err := b.Status(i)
					switch {
					case err != nil || !st.State.Terminal():
						t.Errorf("task %d: %+v, %v", i, st, err)
					case st.State == xfer.Canceled && canceled:
					case i == bad && (st.State != xfer.Failed || xfer.CodeOf(st.Err) != xfer.Refused):
						t.Errorf("the bad task: %+v", st)
					case i != bad && st != xfer.Status{State: xfer.Completed, Bytes: rs[i].Len}:
						t.Errorf("task %d: %+v", i, st)
					case i != bad && op == xfer.Read && !canceled && !bytes.Equal(local.Bytes()[i*slot:][:slot], remote[s*perBatch*slot+i*slot:][:slot]):
						t.Errorf("task %d read other bytes", i)
					case i != bad && op == xfer.Write && !bytes.Equal(want[i*slot:][:slot], remote[s*perBatch*slot+i*slot:][:slot]):
						t.Errorf("task %d wrote other bytes", i)
					}
				}
				if err := b.Reset(); err != nil {
					t.Errorf("Reset: %v", err)
					return
				}
				if n := local.InUse(); n != 0 {
					t.Errorf("%d leases of a batch that is over", n)
				}
			}
		})
	}
	working.Wait()
	close(stop)
	around.Wait()
	r.mu.Lock()
	same(t, "peers that the switchboard remembers", len(r.peers), 3)
	r.mu.Unlock()
}
