//go:build !race

package local

import (
	"testing"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

func TestAllocsOfACopy(t *testing.T) {
	a, b := openEngine(t), openEngine(t)
	here, there := a.memory(1<<20, false), b.memory(1<<20, true)
	r, s := a.dial(b)
	for _, n := range []uint64{64, transport.SmallLimit, 1 << 20} {
		for _, op := range []xfer.Op{xfer.Write, xfer.Read} {
			k := newTask(op, here, 0, n, uint64(there.Addr))
			got := testing.AllocsPerRun(200, func() {
				k.cut, k.left = 0, n
				if f := s.run1(r, k); f != nil {
					t.Fatal(f)
				}
			})
			if got != 0 {
				t.Errorf("%v allocations per %s of %d bytes", got, op, n)
			}
		}
	}
}

// run1 is run without a timer.
func (s *source) run1(r transport.Route, k *task) *xfer.Fault {
	s.add(k)
	r.Kick()
	<-k.ended
	return k.fault
}
