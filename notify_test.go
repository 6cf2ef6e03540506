package moonpath_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

func TestNotifiesArriveInOrderAndAreForgotten(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	id := open(t, e, target)
	var want []moonpath.Notify
	for i := range 20 {
		n := moonpath.Notify{Name: e.Name(), Text: fmt.Sprintf("äöü \"%d\"\n", i)}
		want = append(want, n)
		var err error
		if i%2 == 0 {
			err = e.SendNotify(id, n)
		} else {
			err = e.SendNotifyByName(target.Name(), n)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := target.GetNotifies(); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	if got := target.GetNotifies(); len(got) != 0 {
		t.Errorf("fetched a second time: %v", got)
	}
	if err := e.SendNotify(moonpath.LocalSegment, want[0]); err != nil {
		t.Fatal(err)
	}
	if got := e.GetNotifies(); !cmp.Equal(got, want[:1]) {
		t.Errorf("sent to itself, arrived %v", got)
	}
}

func TestNotifyRefusesWhatPeersCannotReceive(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	id := open(t, e, target)
	for name, n := range map[string]moonpath.Notify{
		"NUL in text":  {Name: "a", Text: "b\x00c"},
		"NUL in name":  {Name: "\x00", Text: "b"},
		"not UTF-8":    {Name: "a", Text: "\xff\xfe"},
		"over a frame": {Name: "a", Text: strings.Repeat("x", 1<<20)},
	} {
		t.Run(name, func(t *testing.T) { requireFault(t, e.SendNotify(id, n), xfer.InvalidArgument) })
	}
	if got := target.GetNotifies(); len(got) != 0 {
		t.Errorf("arrived all the same: %v", got)
	}
}

// notifyPair are two engines with a request that succeeds and one that fails.
func notifyPair(t *testing.T) (e, target *moonpath.Engine, good, bad moonpath.Request) {
	t.Helper()
	target, e = openEngine(t, nil), openEngine(t, nil)
	there, here := alloc(t, target, 4096), alloc(t, e, 4096)
	good = moonpath.Request{Op: moonpath.OpWrite, Local: here.At(0), Len: 64, Target: open(t, e, target), Remote: uint64(there.At(0))}
	bad = good
	bad.Remote = 64
	return e, target, good, bad
}

func TestSubmitTransferWithNotifyTellsTheTargetOnce(t *testing.T) {
	note := moonpath.Notify{Name: "job 1", Text: "done"}
	for finder, find := range map[string]func(*moonpath.Engine, moonpath.BatchID) error{
		"GetBatchTransferStatus": func(e *moonpath.Engine, id moonpath.BatchID) error {
			_, err := e.GetBatchTransferStatus(id)
			return err
		},
		"GetTransferStatus": func(e *moonpath.Engine, id moonpath.BatchID) error { _, err := e.GetTransferStatus(id, 0); return err },
		"FreeBatchID":       (*moonpath.Engine).FreeBatchID,
	} {
		t.Run(finder, func(t *testing.T) {
			e, target, good, _ := notifyPair(t)
			b := newBatch(t, e, 2)
			if err := e.SubmitTransferWithNotify(b.ID(), []moonpath.Request{good, good}, note); err != nil {
				t.Fatal(err)
			}
			if err := b.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if early := target.GetNotifies(); len(early) != 0 {
				t.Errorf("sent before anybody looked: %v", early)
			}
			if err := find(e, b.ID()); err != nil {
				t.Fatal(err)
			}
			if got := target.GetNotifies(); !cmp.Equal(got, []moonpath.Notify{note}) {
				t.Errorf("arrived %v, want %v", got, note)
			}
			find(e, b.ID()) // a freed batch is an error, and nothing is sent
			if again := target.GetNotifies(); len(again) != 0 {
				t.Errorf("sent again: %v", again)
			}
		})
	}
}

func TestConcurrentPollsSendOneNotify(t *testing.T) {
	e, target, good, _ := notifyPair(t)
	for round := range 20 {
		batch := batchID(t, e, 1)
		if err := e.SubmitTransferWithNotify(batch, []moonpath.Request{good}, moonpath.Notify{Name: "n", Text: fmt.Sprint(round)}); err != nil {
			t.Fatal(err)
		}
		var pollers sync.WaitGroup
		for range 8 {
			pollers.Go(func() { await(t, e, batch) })
		}
		pollers.Wait()
		if got := target.GetNotifies(); len(got) != 1 || got[0].Text != fmt.Sprint(round) {
			t.Fatalf("arrived %v in round %d", got, round)
		}
	}
}

func TestNoNotifyAfterAFailure(t *testing.T) {
	e, target, good, bad := notifyPair(t)
	batch := batchID(t, e, 3)
	if err := e.SubmitTransferWithNotify(batch, []moonpath.Request{good, bad, good}, moonpath.Notify{Name: "lost", Text: "never"}); err != nil {
		t.Fatal(err)
	}
	if s := await(t, e, batch); s.State != xfer.Failed {
		t.Fatalf("%+v, want failed", s)
	}
	for task := range 3 {
		e.GetTransferStatus(batch, task)
	}
	if err := e.FreeBatchID(batch); err != nil {
		t.Fatal(err)
	}

	// The next batch takes the same place, completes, and must not send what was left.
	next := batchID(t, e, 1)
	if uint32(next) != uint32(batch) {
		t.Fatalf("batch %#x does not take the place of %#x", next, batch)
	}
	if err := e.SubmitTransfer(next, []moonpath.Request{good}); err != nil {
		t.Fatal(err)
	}
	if s := await(t, e, next); s.State != xfer.Completed {
		t.Fatalf("%+v, want completed", s)
	}
	if err := e.FreeBatchID(next); err != nil {
		t.Fatal(err)
	}
	if got := target.GetNotifies(); len(got) != 0 {
		t.Errorf("arrived %v, want nothing", got)
	}
}

func TestALaterNotifyOfTheBatchReplacesTheFirst(t *testing.T) {
	e, target, good, _ := notifyPair(t)
	batch := batchID(t, e, 2)
	for _, text := range []string{"first", "second"} {
		if err := e.SubmitTransferWithNotify(batch, []moonpath.Request{good}, moonpath.Notify{Name: "n", Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	await(t, e, batch)
	if got, want := target.GetNotifies(), []moonpath.Notify{{Name: "n", Text: "second"}}; !cmp.Equal(got, want) {
		t.Errorf("arrived %v, want %v", got, want)
	}
}

func TestRefusedSubmissionLeavesNoNotify(t *testing.T) {
	e, target, good, _ := notifyPair(t)
	batch := batchID(t, e, 1)
	requireFault(t, e.SubmitTransferWithNotify(batch, []moonpath.Request{good, good}, moonpath.Notify{Name: "n"}), xfer.TooManyRequests)
	if err := e.SubmitTransfer(batch, []moonpath.Request{good}); err != nil {
		t.Fatal(err)
	}
	await(t, e, batch)
	if got := target.GetNotifies(); len(got) != 0 {
		t.Errorf("arrived %v, want nothing", got)
	}
}

func TestNotifyAndProbeOfADeadPeerFail(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	id := open(t, e, target)
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	requireFault(t, e.SendNotify(id, moonpath.Notify{Name: "a"}), xfer.Socket)
	requireFault(t, e.ProbePeerAlive(id), xfer.Socket)
	requireFault(t, e.Probe(t.Context(), target.Name()), xfer.Socket)
}

func TestResetForgetsTheNotify(t *testing.T) {
	e, target, good, bad := notifyPair(t)
	b := newBatch(t, e, 1)
	if err := e.SubmitTransferWithNotify(b.ID(), []moonpath.Request{bad}, moonpath.Notify{Name: "lost"}); err != nil {
		t.Fatal(err)
	}
	requireFault(t, b.Wait(t.Context()), xfer.Refused)
	transfer(t, b, good)
	await(t, e, b.ID())
	if got := target.GetNotifies(); len(got) != 0 {
		t.Errorf("arrived %v, want nothing", got)
	}
}
