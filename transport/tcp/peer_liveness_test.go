package tcp

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDialledConnectionsFindOutThatThePeerIsGone looks at what the kernel is told about lanes and about the connection
// for one request at a time.
func TestDialledConnectionsFindOutThatThePeerIsGone(t *testing.T) {
	g := &target{version: 2}
	_, d := g.start(t)
	h := openHost(t)
	m := h.memory(4096, false)
	_, s := h.dial(d)
	s.do(write(m, 0, 100, remoteBase), read(m, 0, 100, remoteBase+4096).suspect())
	var all []*net.TCPConn
	for _, l := range s.route.lanes {
		if l.up.Load() {
			all = append(all, l.connection())
		}
	}
	one := s.route.serial[0]
	one.mu.Lock()
	all = append(all, one.link.conn)
	one.mu.Unlock()
	if len(all) < 2 || all[len(all)-1] == nil {
		t.Fatalf("%d connections, want a lane and the one for suspects", len(all))
	}
	for i, c := range all {
		raw, err := c.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		err = raw.Control(func(fd uintptr) {
			for _, o := range []struct {
				name              string
				level, opt, value int
			}{
				{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
				{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15},
				{"TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 5},
				{"TCP_KEEPCNT", unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3},
				{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 30000},
			} {
				if got, err := unix.GetsockoptInt(int(fd), o.level, o.opt); err != nil || got != o.value {
					t.Errorf("connection %d: %s is %d, %v; want %d", i, o.name, got, err, o.value)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
