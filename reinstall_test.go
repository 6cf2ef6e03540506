package moonpath_test

import (
	"bytes"
	"testing"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

// The target's side: peers that were served are told nothing, so they find out and look again.
func TestUninstalledTargetServesAgainAfterInstallation(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	there, here := alloc(t, target, 4096), alloc(t, e, 4096)
	id, b := open(t, e, target), newBatch(t, e, 1)
	r := moonpath.Request{Op: moonpath.OpWrite, Pin: pinned(t, e, "tcp"), Local: here.At(0), Len: 4096, Target: id, Remote: uint64(there.At(0))}
	transfer(t, b, r)
	if err := target.UninstallTransport("tcp"); err != nil {
		t.Fatal(err)
	}
	submit(t, b, r)
	if err := b.Wait(t.Context()); err == nil {
		t.Error("served by a transport that is not installed")
	} else {
		requireFault(t, err, xfer.CodeOf(err))
	}
	_, err := openEngine(t, nil).OpenSegment(target.Name())
	requireFault(t, err, xfer.Metadata)

	if _, err := target.InstallTransport("tcp"); err != nil {
		t.Fatal(err)
	}
	if err := e.SyncSegmentCache(target.Name()); err != nil {
		t.Fatal(err)
	}
	fill(here.Bytes(), 44)
	transfer(t, b, r)
	if !bytes.Equal(here.Bytes(), there.Bytes()) {
		t.Error("the bytes are not there")
	}
}
