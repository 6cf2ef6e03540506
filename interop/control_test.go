package interop

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/interop/cxx"
	"github.com/moonpath-io/moonpath/xfer"
)

// texts are what notifications are made of: both engines escape what is not ASCII, in two halves beyond 16 bits.
var texts = []string{"", "plain", "ünï €", "火 🙂 \U0003ffff", "quote \" backslash \\ slash / <&>", "tab\tnewline\nbell\a"}

// mangled is sent wrongly by the C++ engine, as \u17c0\udc00, which is no text, as is all from U+40000. It reads it well.
const mangled = "\U00040000"

func TestNotifyToCxx(t *testing.T) {
	peer := cxx.Start(t)
	engine := openEngine(t, nil)
	id := openSegment(t, engine, peer.Name)
	var want []cxx.Notify
	for _, text := range append(texts, mangled) {
		want = append(want, cxx.Notify{Name: text + "!", Text: text})
		if err := engine.SendNotify(id, moonpath.Notify{Name: text + "!", Text: text}); err != nil {
			t.Fatalf("notify of %q: %v", text, err)
		}
	}
	got, err := peer.Notifies()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNotifyFromCxxAfterItsTransfer(t *testing.T) {
	peer := cxx.Start(t)
	engine := openEngine(t, nil)
	local, remote := allocCxx(t, peer, 4096), alloc(t, engine, 4096)
	var want []moonpath.Notify
	for i, text := range texts {
		want = append(want, moonpath.Notify{Name: text + "!", Text: text})
		fillCxx(t, peer, local, 4096, uint64(50+i))
		n := &cxx.Notify{Name: text + "!", Text: text}
		if err := peer.TransferNotify(cxx.Write, engine.Name(), local, uint64(remote.At(0)), 4096, n); err != nil {
			t.Fatalf("transfer with notify of %q: %v", text, err)
		}
		wantCxx(t, peer, "source of the transfer", local, remote.Bytes())
	}
	// What is no text is refused, and the C++ engine does not tell its caller.
	n := &cxx.Notify{Name: mangled}
	if err := peer.TransferNotify(cxx.Write, engine.Name(), local, uint64(remote.At(0)), 4096, n); err != nil {
		t.Errorf("transfer with a notify that is no text: %v", err)
	}
	// A failed transfer has no notification.
	n = &cxx.Notify{Name: "none"}
	err := peer.TransferNotify(cxx.Write, engine.Name(), local, uint64(remote.At(0))+1, 4096, n)
	wantCode(t, "transfer across the end", err, -1)
	if diff := cmp.Diff(want, engine.GetNotifies()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNotifyToCxxAfterOurTransfer(t *testing.T) {
	peer := cxx.Start(t)
	remote := allocCxx(t, peer, 4096)
	engine := openEngine(t, nil)
	memory := alloc(t, engine, 4096)
	id := openSegment(t, engine, peer.Name)
	transfer := func(text string, n uint64) moonpath.Status {
		t.Helper()
		batch, err := engine.AllocateBatchID(1)
		if err != nil {
			t.Fatal(err)
		}
		r := []moonpath.Request{{Op: moonpath.OpWrite, Local: memory.At(0), Len: n, Target: id, Remote: remote + 4096 - n}}
		if n == 0 { // one that fails
			r[0].Len, r[0].Remote = 1, remote+4096
		}
		if err := engine.SubmitTransferWithNotify(batch, r, moonpath.Notify{Name: "done", Text: text}); err != nil {
			t.Fatal(err)
		}
		var s moonpath.Status
		eventually(t, "end of the batch", func() bool {
			s, err = engine.GetBatchTransferStatus(batch)
			return err != nil || s.State.Terminal()
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := engine.FreeBatchID(batch); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := transfer("erledigt ✓", 4096); s.State != xfer.Completed {
		t.Errorf("good transfer: %+v", s)
	}
	if s := transfer("not sent", 0); s.State != xfer.Failed {
		t.Errorf("bad transfer: %+v", s)
	}
	got, err := peer.Notifies()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]cxx.Notify{{Name: "done", Text: "erledigt ✓"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProbe(t *testing.T) {
	peer := cxx.Start(t)
	engine := openEngine(t, nil)
	if err := engine.ProbePeerAlive(openSegment(t, engine, peer.Name)); err != nil {
		t.Errorf("probe of C++: %v", err)
	}
	if err := peer.Probe(engine.Name()); err != nil {
		t.Errorf("probe by C++: %v", err)
	}
	name := engine.Name()
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "probe of a closed engine", peer.Probe(name), -102)

	engine = openEngine(t, nil)
	id := openSegment(t, engine, peer.Name)
	peer.Kill()
	wantFault(t, "probe of a killed engine", engine.ProbePeerAlive(id), xfer.Socket)
}
