package multi

import (
	"testing"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/xfer"
)

func TestWhatADescriptionHasAgainstARange(t *testing.T) {
	tcp, rdma := []string{"tcp"}, []string{"rdma"}
	plain := &segment.Desc{Protocols: tcp, Buffers: []segment.Buffer{{Addr: 1000, Len: 100}, {Addr: 1100, Len: 100}, {Addr: 5000, Len: 100}}}
	spoken := &segment.Desc{Protocols: []string{"tcp", "rdma"}, Ext: &segment.Extension{Incarnation: 1}, Buffers: []segment.Buffer{
		{Addr: 1000, Len: 100, Protocols: tcp}, {Addr: 1100, Len: 100, Protocols: rdma}, {Addr: 5000, Len: 100}}}
	for _, c := range []struct {
		name         string
		desc         *segment.Desc
		path         string
		remote, size uint64
		code         string
		side         xfer.Side
		have         string
	}{
		{"inside", plain, "tcp", 1000, 100, "", "", ""},
		{"across two that touch", plain, "tcp", 1050, 150, "", "", ""},
		{"across two that touch, and out", plain, "tcp", 1050, 151, reasonRemote, xfer.SideCaller, "150 bytes of it, then a gap"},
		{"before all", plain, "tcp", 10, 1, reasonRemote, xfer.SideCaller, "0x3e8 + 100 as the nearest of 3"},
		{"no buffers", &segment.Desc{}, "tcp", 10, 1, reasonRemote, xfer.SideCaller, "no buffer at all"},
		{"to the end of the address space", plain, "tcp", ^uint64(0) - 10, 10, reasonRemote, xfer.SideCaller, "0x1388 + 100 as the nearest of 3"},
		{"served over the path", spoken, "tcp", 1000, 100, "", "", ""},
		{"served over another one", spoken, "tcp", 1100, 100, reasonBuffer, xfer.SidePeer, "served over rdma only"},
		{"the second half served over another one", spoken, "tcp", 1050, 100, reasonBuffer, xfer.SidePeer, "served over rdma only"},
		{"served over nothing", spoken, "tcp", 5000, 100, reasonBuffer, xfer.SidePeer, "served over nothing"},
		{"a path that is never published", spoken, "local", 5000, 100, "", "", ""},
		{"no path", spoken, "", 1100, 100, "", "", ""},
	} {
		why := remoteReason(c.desc, c.path, c.remote, c.size)
		if why.Code != c.code || why.Side != c.side || why.Have != c.have || (why.Next != "") != (c.code != "") {
			t.Errorf("%s: %+v; want %q, %q, %q", c.name, why, c.code, c.side, c.have)
		}
	}
}
