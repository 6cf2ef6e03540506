package moonpath_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

// number is what Mooncake's functions return as a status: 0 or the code's number.
func number(err error) int { return int(xfer.CodeOf(err)) }

func TestVerbsReturnMooncakesNumbers(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	there, here := alloc(t, target, 1<<16), alloc(t, e, 1<<16)
	stalled := newRawPeer(t, nil)
	busy := batchID(t, e, 1)
	raw := openName(t, e, stalled.name)
	if err := e.SubmitTransfer(busy, []moonpath.Request{{Op: moonpath.OpWrite, Local: here.At(0), Len: 64, Target: raw, Remote: rawMemory}}); err != nil {
		t.Fatal(err)
	}
	id := open(t, e, target)
	rdma := pinned(t, e, "rdma")
	full := batchID(t, e, 1)
	good := moonpath.Request{Op: moonpath.OpWrite, Local: here.At(0), Len: 64, Target: id, Remote: uint64(there.At(0))}
	free := unregistered(t, e, 1<<16)

	for _, c := range []struct {
		name string
		want int
		call func() error
	}{
		{"submit", 0, func() error { return e.SubmitTransfer(full, []moonpath.Request{good}) }},
		{"submit nothing", 0, func() error { return e.SubmitTransfer(full, nil) }},
		{"submit to an unknown batch", 1, func() error { return e.SubmitTransfer(4711, []moonpath.Request{good}) }},
		{"submit to an unknown segment", 1, func() error { return e.SubmitTransfer(batchID(t, e, 1), []moonpath.Request{{Target: 4711}}) }},
		{"submit beyond the capacity", 2, func() error { return e.SubmitTransfer(full, []moonpath.Request{good}) }},
		{"submit over a transport that is not there", 8, func() error {
			r := good
			r.Pin = rdma
			return e.SubmitTransfer(batchID(t, e, 1), []moonpath.Request{r})
		}},
		{"submit with a notification and no request", 1, func() error { return e.SubmitTransferWithNotify(full, nil, moonpath.Notify{}) }},
		{"batch with a negative capacity", 1, func() error { _, err := e.AllocateBatchID(-1); return err }},
		{"batch with an absurd capacity", 1, func() error { _, err := e.AllocateBatchID(math.MaxInt); return err }},
		{"status of a task that is not there", 1, func() error { _, err := e.GetTransferStatus(full, 1); return err }},
		{"status of a negative task", 1, func() error { _, err := e.GetTransferStatus(full, -1); return err }},
		{"free a batch with an unfinished task", 4, func() error { return e.FreeBatchID(busy) }},
		{"register length 0", 1, func() error { return e.RegisterLocalMemory(here.At(0), 0, "*", true) }},
		{"register address 0", 1, func() error { return e.RegisterLocalMemory(0, 4096, "*", true) }},
		{"register what wraps", 1, func() error { return e.RegisterLocalMemory(math.MaxUint64-4095, 8192, "*", true) }},
		{"register what overlaps", 7, func() error { return e.RegisterLocalMemory(here.At(4096), 4096, "*", true) }},
		{"register device memory", 8, func() error { return e.RegisterLocalMemory(moonpath.Addr(free), 4096, "cuda:0", true) }},
		{"unregister what is not registered", 3, func() error { return e.UnregisterLocalMemory(moonpath.Addr(free)) }},
		{"unregister from the middle", 3, func() error { return e.UnregisterLocalMemory(here.At(64)) }},
		{"open an empty name", 1, func() error { _, err := e.OpenSegment(""); return err }},
		{"close a segment that is not open", 1, func() error { return e.CloseSegment(4711) }},
		{"close the own segment", 0, func() error { return e.CloseSegment(moonpath.LocalSegment) }},
		{"refresh a segment that is not open", 0, func() error { return e.SyncSegmentCache("127.0.0.1:1") }},
		{"install what is not built", 8, func() error { _, err := e.InstallTransport("rdma"); return err }},
		{"install twice", 0, func() error { _, err := e.InstallTransport("tcp"); return err }},
		{"get what is not installed", 8, func() error { _, err := e.GetTransport("rdma"); return err }},
		{"uninstall what is not installed", 8, func() error { return e.UninstallTransport("rdma") }},
		{"uninstall what has to stay", 1, func() error { return e.UninstallTransport("local") }},
		{"notify a segment that is not open", 1, func() error { return e.SendNotify(4711, moonpath.Notify{}) }},
		{"probe a segment that is not open", 1, func() error { return e.ProbePeerAlive(4711) }},
		{"probe a live peer", 0, func() error { return e.ProbePeerAlive(id) }},
		{"probe the own segment", 0, func() error { return e.ProbePeerAlive(moonpath.LocalSegment) }},
		{"pin a name that nobody knows", 1, func() error { _, err := e.Pin("pigeon"); return err }},
		{"explain a segment that is not open", 1, func() error { _, err := e.Explain(4711, moonpath.OpRead, 1, moonpath.NoPin); return err }},
		{"explain an operation that is none", 1, func() error { _, err := e.Explain(id, 2, 1, moonpath.NoPin); return err }},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.call()
			if number(err) != c.want {
				t.Fatalf("%v (%d), want %d", err, number(err), c.want)
			}
			if err != nil {
				requireFault(t, err, moonpath.Code(c.want))
			}
		})
	}
	if w := moonpath.Code(8).Int(); w != -8 {
		t.Errorf("functions that return an int give %d, want -8", w)
	}
}

func TestStatesAreMooncakesNumbers(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	there, here := alloc(t, target, 4096), alloc(t, e, 4096)
	stalled := newRawPeer(t, nil)
	id, raw := open(t, e, target), openName(t, e, stalled.name)
	write := func(to moonpath.SegmentID, remote uint64) moonpath.Request {
		return moonpath.Request{Op: moonpath.OpWrite, Local: here.At(0), Len: 64, Target: to, Remote: remote}
	}
	for _, c := range []struct {
		name    string
		request moonpath.Request
		after   func(*moonpath.Batch)
		want    xfer.State
	}{
		{"waiting", write(raw, rawMemory), nil, 0},
		{"canceled", write(raw, rawMemory), func(b *moonpath.Batch) { b.Cancel(); b.Wait(t.Context()) }, 3},
		{"completed", write(id, uint64(there.At(0))), func(b *moonpath.Batch) { b.Wait(t.Context()) }, 4},
		{"timeout", write(raw, rawMemory), func(b *moonpath.Batch) { b.Wait(t.Context()) }, 5},
		{"failed", write(id, 64), func(b *moonpath.Batch) { b.Wait(t.Context()) }, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := moonpath.BatchOptions{Capacity: 1}
			if c.want == xfer.Timeout {
				o.Deadline = 1 // nanosecond
			}
			b, err := e.NewBatch(o)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			submit(t, b, c.request)
			if c.after != nil {
				c.after(b)
			}
			s, err := e.GetTransferStatus(b.ID(), 0)
			if err != nil || s.State != c.want || s.State.String() != c.name {
				t.Fatalf("%+v, %v, want %s (%d)", s, err, c.name, c.want)
			}
			all, err := e.GetBatchTransferStatus(b.ID())
			want := c.want
			if want == xfer.Canceled || want == xfer.Timeout {
				want = xfer.Failed // as a whole, a batch knows waiting, completed and failed
			}
			if err != nil || all.State != want {
				t.Errorf("as a whole %+v, %v, want %v", all, err, want)
			}
		})
	}
	s, err := e.GetTransferStatus(4711, 0)
	if err == nil || s.State != 2 {
		t.Errorf("status of an unknown batch: %v, %v, want invalid (2)", s.State, err)
	}
}

func TestSubmitTransferIsAllOrNothing(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	there, here := alloc(t, target, 4096), alloc(t, e, 4096)
	id, rdma := open(t, e, target), pinned(t, e, "rdma")
	good := moonpath.Request{Op: moonpath.OpWrite, Local: here.At(0), Len: 4096, Target: id, Remote: uint64(there.At(0))}
	unknown, unreachable := good, good
	unknown.Target = 99
	unreachable.Pin = rdma

	for _, c := range []struct {
		name     string
		capacity int
		requests []moonpath.Request
		code     moonpath.Code
	}{
		{"an unknown segment", 3, []moonpath.Request{good, good, unknown}, xfer.InvalidArgument},
		{"no transport", 3, []moonpath.Request{good, unreachable, good}, xfer.NotSupportedTransport},
		{"no room", 2, []moonpath.Request{good, good, good}, xfer.TooManyRequests},
	} {
		t.Run(c.name, func(t *testing.T) {
			fill(here.Bytes(), 7)
			clear(there.Bytes())
			batch := batchID(t, e, c.capacity)
			requireFault(t, e.SubmitTransfer(batch, c.requests), c.code)
			s, err := e.GetBatchTransferStatus(batch)
			if err != nil || s.State != xfer.Completed || s.Bytes != 0 {
				t.Errorf("after the refusal the batch is %+v, %v, want empty", s, err)
			}
			if _, err := e.GetTransferStatus(batch, 0); !errors.Is(err, xfer.InvalidArgument) {
				t.Errorf("task 0 exists after the refusal: %v", err)
			}
			if !bytes.Equal(there.Bytes(), make([]byte, 4096)) {
				t.Error("the refused submission moved bytes")
			}
			// All of the capacity is still there.
			for range c.capacity {
				if err := e.SubmitTransfer(batch, []moonpath.Request{good}); err != nil {
					t.Fatal(err)
				}
			}
			if s := await(t, e, batch); s.State != xfer.Completed || s.Bytes != uint64(c.capacity)*4096 {
				t.Errorf("the batch then ended as %+v", s)
			}
			if !bytes.Equal(there.Bytes(), here.Bytes()) {
				t.Error("bytes are missing")
			}
		})
	}
}

func TestSubmitRefusesMoreThanTheBatchHolds(t *testing.T) {
	e := openEngine(t, nil)
	memory := alloc(t, e, 4096)
	b := newBatch(t, e, 2)
	r := moonpath.Request{Op: moonpath.OpWrite, Local: memory.At(0), Len: 64, Remote: uint64(memory.At(1024))}
	for name, submit := range map[string]func([]moonpath.Request) (int, error){
		"Submit":    func(rs []moonpath.Request) (int, error) { return b.Submit(t.Context(), rs) },
		"TrySubmit": b.TrySubmit,
	} {
		if err := b.Reset(); err != nil {
			t.Fatal(err)
		}
		n, err := submit([]moonpath.Request{r, r, r})
		requireFault(t, err, xfer.TooManyRequests)
		if n != 0 || b.Len() != 0 {
			t.Errorf("%s took %d of too many requests, the batch has %d tasks", name, n, b.Len())
		}
		if n, err := submit([]moonpath.Request{r, r}); n != 2 || err != nil {
			t.Errorf("%s of what fits: %d, %v", name, n, err)
		}
		if err := b.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestEmptyBatchIsCompleted(t *testing.T) {
	e := openEngine(t, nil)
	s, err := e.GetBatchTransferStatus(batchID(t, e, 0))
	if err != nil || s.State != xfer.Completed || s.Bytes != 0 {
		t.Errorf("%+v, %v, want completed with 0 bytes", s, err)
	}
}

func TestLengthZeroCompletesWithoutTraffic(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	b := newBatch(t, e, 1)
	transfer(t, b, moonpath.Request{Op: moonpath.OpWrite, Pin: pinned(t, e, "tcp"), Target: open(t, e, target)})
	if n := counter(t, e, "tcp", "dials"); n != 0 {
		t.Errorf("%d connections for nothing", n)
	}
}

// A batch that has completed once must not hide what is submitted into its remaining room.
func TestBatchStatusIsNotSticky(t *testing.T) {
	e := openEngine(t, nil)
	memory := alloc(t, e, 4096)
	batch := batchID(t, e, 3)
	good := moonpath.Request{Op: moonpath.OpWrite, Local: memory.At(0), Len: 64, Remote: uint64(memory.At(1024))}
	bad := good
	bad.Remote = 64
	for _, step := range []struct {
		request moonpath.Request
		want    xfer.State
		bytes   uint64
	}{{good, xfer.Completed, 64}, {bad, xfer.Failed, 64}, {good, xfer.Failed, 128}} {
		if err := e.SubmitTransfer(batch, []moonpath.Request{step.request}); err != nil {
			t.Fatal(err)
		}
		if s := await(t, e, batch); s.State != step.want || s.Bytes != step.bytes {
			t.Errorf("%+v, want %v with %d bytes", s, step.want, step.bytes)
		}
	}
	for i, want := range []xfer.State{xfer.Completed, xfer.Failed, xfer.Completed} {
		if s, err := e.GetTransferStatus(batch, i); err != nil || s.State != want {
			t.Errorf("task %d: %+v, %v, want %v", i, s, err, want)
		}
	}
	if err := e.FreeBatchID(batch); err != nil {
		t.Errorf("a batch with a failed task cannot be freed: %v", err)
	}
}

// Mooncake's FreeBatchID wants to have seen every task end; ours looks for itself.
func TestFreeBatchIDNeedsNoPoll(t *testing.T) {
	e := openEngine(t, nil)
	memory := alloc(t, e, 4096)
	b := newBatch(t, e, 1)
	transfer(t, b, moonpath.Request{Op: moonpath.OpWrite, Local: memory.At(0), Len: 64, Remote: uint64(memory.At(1024))})
	if err := e.FreeBatchID(b.ID()); err != nil {
		t.Error(err)
	}
}
