package moonpath_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

func TestIdsCountFromOneAndAreNotUsedAgain(t *testing.T) {
	e := openEngine(t, nil)
	first, second, third := batchID(t, e, 1), batchID(t, e, 1), batchID(t, e, 1)
	if first != 1 || second != 2 || third != 3 {
		t.Errorf("batches are %d, %d, %d, want 1, 2, 3", first, second, third)
	}
	if err := e.FreeBatchID(second); err != nil {
		t.Fatal(err)
	}
	if again := batchID(t, e, 1); again == second || uint32(again) != uint32(second) {
		t.Errorf("after batch %d was freed the next is %#x, want its index with another generation", second, again)
	}

	names := []string{openEngine(t, nil).Name(), openEngine(t, nil).Name()}
	for i, name := range names {
		if id := openName(t, e, name); id != moonpath.SegmentID(i+1) {
			t.Errorf("segment %d has id %d", i+1, id)
		}
		if id := openName(t, e, name); id != moonpath.SegmentID(i+1) {
			t.Errorf("opened again, segment %d has id %d", i+1, id)
		}
	}
	if id := openName(t, e, e.Name()); id != 0 {
		t.Errorf("the own segment has id %d", id)
	}
	if err := e.CloseSegment(1); err != nil {
		t.Fatal(err)
	}
	if id := openName(t, e, names[0]); id == 1 || uint32(id) != 1 {
		t.Errorf("after segment 1 was closed it was opened as %#x, want its index with another generation", id)
	}
}

// Handles of Mooncake are raw pointers; ours are checked by every verb that takes one.
func TestEveryVerbRefusesHandlesThatAreNotOpen(t *testing.T) {
	e := openEngine(t, nil)
	memory := alloc(t, e, 4096)
	closed := open(t, e, openEngine(t, nil))
	if err := e.CloseSegment(closed); err != nil {
		t.Fatal(err)
	}
	freed := batchID(t, e, 1)
	if err := e.FreeBatchID(freed); err != nil {
		t.Fatal(err)
	}
	live := batchID(t, e, 8)
	request := func(to moonpath.SegmentID) []moonpath.Request {
		return []moonpath.Request{{Op: moonpath.OpWrite, Local: memory.At(0), Len: 8, Target: to, Remote: 1 << 20}}
	}
	bad := map[string]uint64{"foreign": 50, "of a later generation": 7<<32 | 1, "huge": math.MaxUint64, "huge index": math.MaxUint32, "negative": uint64(math.MaxInt64) + 1}

	batches := map[string]uint64{"zero": 0, "freed": uint64(freed)}
	segments := map[string]uint64{"closed": uint64(closed)} // 0 is the engine's own
	for name, id := range bad {
		batches[name], segments[name] = id, id
	}
	for name, id := range batches {
		id := moonpath.BatchID(id)
		for verb, call := range map[string]func() error{
			"FreeBatchID":    func() error { return e.FreeBatchID(id) },
			"SubmitTransfer": func() error { return e.SubmitTransfer(id, request(0)) },
			"SubmitTransferWithNotify": func() error {
				return e.SubmitTransferWithNotify(id, request(0), moonpath.Notify{Name: "a", Text: "b"})
			},
			"GetTransferStatus": func() error {
				s, err := e.GetTransferStatus(id, 0)
				return notInvalid(s, err)
			},
			"GetBatchTransferStatus": func() error {
				s, err := e.GetBatchTransferStatus(id)
				return notInvalid(s, err)
			},
		} {
			t.Run(fmt.Sprintf("batch %s/%s", name, verb), func(t *testing.T) { requireFault(t, call(), xfer.InvalidArgument) })
		}
	}
	b := newBatch(t, e, 1)
	for name, id := range segments {
		id := moonpath.SegmentID(id)
		for verb, call := range map[string]func() error{
			"CloseSegment":   func() error { return e.CloseSegment(id) },
			"Segment":        func() error { _, err := e.Segment(id); return err },
			"SendNotify":     func() error { return e.SendNotify(id, moonpath.Notify{Name: "a", Text: "b"}) },
			"ProbePeerAlive": func() error { return e.ProbePeerAlive(id) },
			"Explain":        func() error { _, err := e.Explain(id, moonpath.OpRead, 8, moonpath.NoPin); return err },
			"Write":          func() error { return e.Write(t.Context(), id, memory.At(0), 1<<20, 8) },
			"Read":           func() error { return e.Read(t.Context(), id, memory.At(0), 1<<20, 8) },
			"SubmitTransfer": func() error { return e.SubmitTransfer(live, request(id)) },
			"Submit": func() error {
				submit(t, b, request(id)...)
				return b.Wait(t.Context())
			},
		} {
			t.Run(fmt.Sprintf("segment %s/%s", name, verb), func(t *testing.T) { requireFault(t, call(), xfer.InvalidArgument) })
		}
	}
}

// notInvalid passes an error on if the state beside it is Invalid, as it has to be.
func notInvalid(s moonpath.Status, err error) error {
	if err != nil && s.State != xfer.Invalid {
		return fmt.Errorf("state %v beside the error %w", s.State, err)
	}
	return err
}

func TestUseAfterCloseIsAnError(t *testing.T) {
	e, err := moonpath.Open(t.Context(), moonpath.Options{Host: "127.0.0.1", Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	peer := openEngine(t, nil)
	id := open(t, e, peer)
	memory := alloc(t, e, 4096)
	b, err := e.NewBatch(moonpath.BatchOptions{Capacity: 4})
	if err != nil {
		t.Fatal(err)
	}
	batch := batchID(t, e, 4)
	request := []moonpath.Request{{Op: moonpath.OpWrite, Local: memory.At(0), Len: 8, Remote: uint64(memory.At(64))}}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	note := moonpath.Notify{Name: "a", Text: "b"}
	for verb, call := range map[string]func() error{
		"Alloc":               func() error { _, err := e.Alloc(4096, moonpath.AllocOptions{}); return err },
		"Register":            func() error { _, err := e.Register(make([]byte, 4096), moonpath.RegisterOptions{}); return err },
		"RegisterLocalMemory": func() error { return e.RegisterLocalMemory(1<<20, 4096, "*", true) },
		"RegisterLocalMemoryBatch": func() error {
			return e.RegisterLocalMemoryBatch([]moonpath.BufferEntry{{Addr: 1 << 20, Length: 1}}, "*")
		},
		"UnregisterLocalMemory":    func() error { return e.UnregisterLocalMemory(memory.At(0)) },
		"Free":                     memory.Free,
		"OpenSegment":              func() error { _, err := e.OpenSegment(peer.Name()); return err },
		"OpenSegment of itself":    func() error { _, err := e.OpenSegment(e.Name()); return err },
		"CloseSegment":             func() error { return e.CloseSegment(id) },
		"SyncSegmentCache":         func() error { return e.SyncSegmentCache("") },
		"NewBatch":                 func() error { _, err := e.NewBatch(moonpath.BatchOptions{Capacity: 1}); return err },
		"AllocateBatchID":          func() error { _, err := e.AllocateBatchID(1); return err },
		"Submit":                   func() error { _, err := b.Submit(t.Context(), request); return err },
		"TrySubmit":                func() error { _, err := b.TrySubmit(request); return err },
		"SubmitTransfer":           func() error { return e.SubmitTransfer(batch, request) },
		"SubmitTransferWithNotify": func() error { return e.SubmitTransferWithNotify(batch, request, note) },
		"Write":                    func() error { return e.Write(t.Context(), id, memory.At(0), 1<<20, 8) },
		"Read":                     func() error { return e.Read(t.Context(), id, memory.At(0), 1<<20, 8) },
		"Explain":                  func() error { _, err := e.Explain(id, moonpath.OpRead, 8, moonpath.NoPin); return err },
		"SendNotify":               func() error { return e.SendNotify(id, note) },
		"SendNotifyByName":         func() error { return e.SendNotifyByName(peer.Name(), note) },
		"ProbePeerAlive":           func() error { return e.ProbePeerAlive(id) },
		"Probe":                    func() error { return e.Probe(t.Context(), peer.Name()) },
		"InstallTransport":         func() error { _, err := e.InstallTransport("tcp"); return err },
		"UninstallTransport":       func() error { return e.UninstallTransport("tcp") },
	} {
		t.Run(verb, func(t *testing.T) { requireFault(t, call(), xfer.Closed) })
	}
	// What only looks still answers, or ends; nothing crashes.
	b.Report()
	b.Cancel()
	if err := b.Close(); err != nil {
		t.Errorf("close a batch of a closed engine: %v", err)
	}
	if s, err := e.GetBatchTransferStatus(batch); err != nil || s.State != xfer.Completed {
		t.Errorf("an empty batch of a closed engine: %+v, %v", s, err)
	}
	if err := e.FreeBatchID(batch); err != nil {
		t.Errorf("free a batch of a closed engine: %v", err)
	}
	e.GetNotifies()
	e.Transports()
	e.Counters()
	e.Segment(moonpath.LocalSegment)
}

func TestUseOfAClosedBatchIsAnError(t *testing.T) {
	e := openEngine(t, nil)
	memory := alloc(t, e, 4096)
	b := newBatch(t, e, 4)
	request := []moonpath.Request{{Op: moonpath.OpWrite, Local: memory.At(0), Len: 8, Remote: uint64(memory.At(64))}}
	transfer(t, b, request...)
	id := b.ID()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	_, err := b.Submit(t.Context(), request)
	requireFault(t, err, xfer.Closed)
	_, err = b.TrySubmit(request)
	requireFault(t, err, xfer.Closed)
	requireFault(t, b.Reset(), xfer.Closed)
	requireFault(t, e.FreeBatchID(id), xfer.InvalidArgument)
	if s, err := b.Status(0); err != nil || s.State != xfer.Completed {
		t.Errorf("the end of its task is forgotten: %+v, %v", s, err)
	}
	b.Cancel()
	<-b.Done()
	if err := b.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestFreeingABatchTwiceIsAnError(t *testing.T) {
	e := openEngine(t, nil)
	id := batchID(t, e, 1)
	if err := e.FreeBatchID(id); err != nil {
		t.Fatal(err)
	}
	requireFault(t, e.FreeBatchID(id), xfer.InvalidArgument)
	next := batchID(t, e, 1) // takes the index
	requireFault(t, e.FreeBatchID(id), xfer.InvalidArgument)
	if err := e.FreeBatchID(next); err != nil {
		t.Errorf("the stale id harmed the batch that came after: %v", err)
	}
}
