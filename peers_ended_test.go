package moonpath_test

import (
	"net"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/transport/fault"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// TestR_LIV_1_ADeadPeerBehindALivingPortIsGivenUp has a peer without hello behind something that accepts for it and then
// ends the connection, 5 ms away in each direction: a balancer, a forwarded port.
func TestR_LIV_1_ADeadPeerBehindALivingPortIsGivenUp(t *testing.T) {
	const count, delay, limit = 1000, 5 * time.Millisecond, 2 * time.Second
	p := newRawPeer(t, perRequest(func(net.Conn, tcpframe.Header) bool { return false }))
	plan, err := fault.NewPlan(1, fault.StreamRule{Do: fault.Delay, Delay: delay}, fault.StreamRule{Do: fault.Delay, Delay: delay, Direction: fault.ToClient})
	if err != nil {
		t.Fatal(err)
	}
	front, err := fault.OpenFront(t.Context(), p.name, plan, fault.FrontOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { front.Close() })
	e := openEngine(t, nil)
	here := alloc(t, e, 4096)
	rs := requestsTo(here, openName(t, e, front.Name()), rawMemory, count, 0)
	for i := range rs {
		rs[i].Len, rs[i].Remote = 4096, rawMemory+uint64(i)*4096
	}
	start := time.Now()
	requireFault(t, once(newBatch(t, e, count), rs), xfer.Socket)
	took := time.Since(start)
	t.Logf("%v, %d connections", took, p.connections.Load())
	if took > limit {
		t.Errorf("took %v, want at most %v", took, limit)
	}
}
