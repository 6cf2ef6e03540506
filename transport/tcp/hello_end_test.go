package tcp

import (
	"testing"

	"github.com/moonpath-io/moonpath/xfer"
)

// A connection that ends during hello, without a byte, says nothing about who is there: the peer may have died in that
// moment, or something between the two may have ended it.
func TestAConnectionThatEndsDuringHelloIsNoOtherEngine(t *testing.T) {
	const incarnation = 4711
	for name, end := range map[string]func(*conn){"reset": (*conn).reset, "closed": func(c *conn) { c.header() }} {
		t.Run(name, func(t *testing.T) {
			g := &target{version: 2, incarnation: incarnation}
			srv := listenRaw(t, func(c *conn) {
				if c.number == 2 || c.number == 3 {
					end(c)
					return
				}
				if c.number == 1 { // until there is work on it
					if c.greet(incarnation) {
						c.header()
						c.reset()
					}
					return
				}
				g.serve(c)
			})
			h := openHost(t)
			m := h.memory(64<<10, false)
			_, s := h.dial(srv.desc(2, incarnation))
			for range 2 {
				k := write(m, 0, 4096, remoteBase)
				s.submit(k)
				<-k.ended
				if k.fault != nil && k.fault.Code == xfer.WrongPeer {
					t.Errorf("%v", k.fault)
				}
			}
			k := write(m, 0, 4096, remoteBase)
			s.submit(k)
			<-k.ended
			if k.fault != nil {
				t.Errorf("afterwards: %v", k.fault)
			}
		})
	}
}
