package tcp

import (
	"fmt"
	"testing"

	"github.com/moonpath-io/moonpath/xfer"
)

// TestOneBadRequestIsFoundInFewConnections: its neighbours are not tried one by one.
func TestOneBadRequestIsFoundInFewConnections(t *testing.T) {
	for _, bad := range []int{0, 1, 200, 499} {
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			const n = 500
			g := &target{version: 2, rejection: func(c *conn) { c.reset() }}
			g.refuse = func(addr uint64) bool { return addr >= remoteBase+48<<20 }
			srv, d := g.start(t)
			h := openHost(t, "tcp.lanes", "1")
			m := h.memory(1<<20, false)
			pattern(m.Bytes(), 5)
			_, s := h.dial(d)
			var ks []*task
			for i := range uint64(n) {
				remote := remoteBase + i*64
				if int(i) == bad {
					remote += 48 << 20
				}
				ks = append(ks, write(m, i*64, 64, remote))
			}
			s.submit(ks...)
			s.finish(ks...)
			for i, k := range ks {
				switch {
				case i == bad && codeOf(k.fault) != xfer.Socket:
					t.Errorf("the bad request ended with %v", k.fault)
				case i != bad && k.fault != nil:
					t.Errorf("request %d is innocent and failed: %v", i, k.fault)
				}
			}
			if got := h.counter(d.Name+"/serial", "requests"); got > 2*minTrial {
				t.Errorf("%d requests were tried by themselves", got)
			}
			if got := srv.accepted.Load(); got > 20 {
				t.Errorf("%d connections", got)
			}
		})
	}
}
