package p2p

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

func TestBacklogIsThatOfTheOptions(t *testing.T) {
	for _, want := range []int{3, 77} {
		n := listenNode(t, func(o *Options) { o.Backlog = want })
		conn, err := n.listener.(*net.TCPListener).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		conn.Control(func(fd uintptr) {
			// Of a listening socket, the kernel tells the length of the queue as sacked segments.
			info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			if err != nil || int(info.Sacked) != want {
				t.Errorf("backlog %d (%v), want %d", info.Sacked, err, want)
			}
		})
	}
}
