package p2p

import (
	"net"
	"testing"
	"testing/synctest"

	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// TestASilentControlPortIsThePeersAffair: a probe that fails must not advise to probe.
func TestASilentControlPortIsThePeersAffair(t *testing.T) {
	for _, request := range []ctrlframe.Type{ctrlframe.Metadata, ctrlframe.Notify, ctrlframe.Probe} {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			defer server.Close()
			go ctrlframe.Read(server, ctrlframe.DefaultLimit)
			_, fault := converse(t.Context(), call{stage: xfer.StageControl, peer: "peer:1"}, client, ctrlframe.Frame{Type: request, Body: []byte("{}\n")}, ctrlframe.DefaultLimit)
			f := mustFault(t, fault, xfer.Socket, xfer.StageControl, "peer:1", "look at its process")
			if f.MustChange() != xfer.SidePeer {
				t.Errorf("%v: %v has to change something", request, f.MustChange())
			}
		})
	}
}
