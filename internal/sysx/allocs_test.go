//go:build !race

package sysx

import (
	"testing"

	"golang.org/x/sys/unix"
)

// stingy is a flow of 100 bytes a call, out of the same vector.
type stingy struct {
	vs  []unix.Iovec
	mem []byte
}

func newStingy() *stingy { return &stingy{make([]unix.Iovec, 1), make([]byte, 100)} }

func (s *stingy) Vectors() []unix.Iovec {
	s.vs[0] = Vec(s.mem)
	return s.vs
}

func (s *stingy) Moved(int) {}

func TestAllocsOfCalls(t *testing.T) {
	a, b := pair(t)
	out, in := stream(t, a, nil, newStingy()), stream(t, b, newStingy(), nil)
	got := testing.AllocsPerRun(1000, func() {
		if n, err := out.TryWriteFlow(); n == 0 || err != nil {
			t.Fatal(n, err)
		}
		if n, err := in.ReadFlow(); n == 0 || err != nil {
			t.Fatal(n, err)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations per pair of calls with flows", got)
	}
	buf := make([]byte, 100)
	plainOut, plainIn := stream(t, a, nil, nil), stream(t, b, nil, nil)
	vs := vecs(buf)
	got = testing.AllocsPerRun(1000, func() {
		vs[0] = Vec(buf)
		if n, err := plainOut.WriteSome(vs); n != len(buf) || err != nil {
			t.Fatal(n, err)
		}
		vs[0] = Vec(buf)
		if n, err := plainIn.Read(vs); n != len(buf) || err != nil {
			t.Fatal(n, err)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations per pair of plain calls", got)
	}
}
