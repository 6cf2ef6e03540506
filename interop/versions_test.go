package interop

import (
	"slices"
	"testing"

	"github.com/moonpath-io/moonpath/interop/cxx"
	"github.com/moonpath-io/moonpath/interop/transcript"
)

// opcodes are those of the requests that went over the recorded data connections.
func opcodes(t *testing.T, r *cxx.Recording) []byte {
	t.Helper()
	tr := r.Stop(nil)
	data := map[int]bool{}
	var seen []byte
	for _, e := range tr.Events {
		if e.Kind == transcript.Opened {
			data[e.Conn] = e.Port == transcript.Data
		}
		if e.Kind != transcript.Sent || e.From != transcript.Initiator || !data[e.Conn] {
			continue
		}
		request, err := e.Message.Bytes(tr.Recorded())
		if err != nil || len(request) < 24 {
			t.Fatalf("request of %d bytes (%v)", len(request), err)
		}
		seen = append(seen, request[16])
	}
	return seen
}

// TestVersionOnTheWire proves that the other tests speak the version that they name.
func TestVersionOnTheWire(t *testing.T) {
	needCxx(t)
	const (
		read1, write1 = 0x00, 0x01
		read2, write2 = 0x80, 0x81
	)
	for name, c := range map[string]struct {
		protocol string
		want     []byte
	}{
		"v2": {"2", []byte{write2, read2}},
		"v1": {"1", []byte{write1, read1 /* of the last byte, which confirms the write */, read1}},
	} {
		t.Run("to C++/"+name, func(t *testing.T) {
			peer := cxx.Start(t)
			remote := allocCxx(t, peer, 4096)
			recording := cxx.Record(t, peer.Name)
			engine := openEngine(t, map[string]string{"tcp.protocol": c.protocol})
			local := alloc(t, engine, 4096)
			id := openSegment(t, engine, recording.Name)
			if err := engine.Write(bounded(t), id, local.At(0), remote, 100); err != nil {
				t.Fatal(err)
			}
			if err := engine.Read(bounded(t), id, local.At(0), remote, 100); err != nil {
				t.Fatal(err)
			}
			if got := opcodes(t, recording); !slices.Equal(got, c.want) {
				t.Errorf("opcodes % x, want % x", got, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		env  []string
		want []byte
	}{
		"v2": {nil, []byte{write2, read2}},
		"v1": {[]string{protocolV1}, []byte{write1, read1}},
	} {
		t.Run("from C++/"+name, func(t *testing.T) {
			peer := cxx.Start(t, c.env...)
			local := allocCxx(t, peer, 4096)
			engine := openEngine(t, nil)
			remote := alloc(t, engine, 4096)
			recording := cxx.Record(t, engine.Name())
			for _, op := range []cxx.Op{cxx.Write, cxx.Read} {
				if err := peer.Transfer(op, recording.Name, local, uint64(remote.At(0)), 100); err != nil {
					t.Fatal(err)
				}
			}
			if got := opcodes(t, recording); !slices.Equal(got, c.want) {
				t.Errorf("opcodes % x, want % x", got, c.want)
			}
		})
	}
}
