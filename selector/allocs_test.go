//go:build !race

package selector

import (
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

func TestAllocsRank(t *testing.T) {
	var v View
	for i := range 16 {
		v.Rows = append(v.Rows, Row{Path: "tcp", Pin: 1, Offer: transport.Offer{
			Ops: transport.BothOps, Local: []xfer.MemKind{xfer.HostMem}, Cost: transport.Cost{Setup: time.Duration(16 - i)},
		}})
	}
	dst := make([]Ranked, 0, len(v.Rows))
	q := Question{Op: xfer.Write, Size: SizeClass(4096)}
	if n := testing.AllocsPerRun(100, func() { dst = Rank(&v, q, dst[:0], nil) }); n != 0 {
		t.Errorf("%v allocations per call, want 0", n)
	}
	if len(dst) != 16 || dst[0].Row != 15 {
		t.Errorf("ranked %v", dst)
	}
}
