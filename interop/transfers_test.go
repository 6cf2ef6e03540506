package interop

import (
	"fmt"
	"slices"
	"testing"

	"github.com/moonpath-io/moonpath"
)

// pairs runs a test in both directions and with every setting that changes what goes over the wire.
func pairs(t *testing.T, size uint64, test func(*testing.T, *pair)) {
	needCxx(t)
	for _, v := range []struct {
		name     string
		settings map[string]string
	}{
		{"v2", nil},
		{"v2 on one lane", map[string]string{"tcp.lanes": "1"}},
		{"v1", map[string]string{"tcp.protocol": "1"}},
	} {
		t.Run("to C++/"+v.name, func(t *testing.T) { test(t, newPairToCxx(t, size, v.settings)) })
	}
	for _, v := range []struct {
		name string
		env  []string
	}{
		{"v2 with pool", nil},
		{"v2 without pool", []string{noPool}},
		{"v1 with pool", []string{protocolV1}},
		{"v1 without pool", []string{protocolV1, noPool}},
	} {
		t.Run("from C++/"+v.name, func(t *testing.T) { test(t, newPairFromCxx(t, size, v.env)) })
	}
}

const (
	noPool     = "MC_TCP_ENABLE_CONNECTION_POOL=0"
	protocolV1 = "MC_TCP_PROTO=1"
)

// sizes are around what either engine cuts at: its own buffers, pieces and calls.
var sizes = []uint64{1, 2, 7, 8, 24, 4095, 4096, 16 * kib, 16*kib + 1, 64*kib - 1, 64 * kib, 64*kib + 1, 300_000, mib, mib + 1, 5*mib + 3, 64 * mib}

func TestSizesAtOddOffsets(t *testing.T) {
	pairs(t, 64*mib+4096, func(t *testing.T, p *pair) {
		for i, n := range sizes {
			seed, local, remote := uint64(10+2*i), uint64(2*i+1), uint64(997+2*i)
			p.initiator.fill(t, local, n, seed)
			if err := p.transfer(t, moonpath.OpWrite, []move{{local, remote, n}}); err != nil {
				t.Fatalf("write of %d bytes: %v", n, err)
			}
			copy(p.target.want[remote:], p.initiator.want[local:local+n])
			p.target.check(t, "write", remote, n)

			p.target.fill(t, remote+1, n, seed+1)
			if err := p.transfer(t, moonpath.OpRead, []move{{local + 3, remote + 1, n}}); err != nil {
				t.Fatalf("read of %d bytes: %v", n, err)
			}
			copy(p.initiator.want[local+3:], p.target.want[remote+1:remote+1+n])
			p.initiator.check(t, "read", local+3, n)
		}
		p.initiator.checkAll(t, "initiator's memory")
		p.target.checkAll(t, "target's memory")
	})
}

// scattered cuts a region into count moves of different lengths with gaps between them, in an order of their own on
// either side.
func scattered(count int, size uint64) []move {
	slot := size / uint64(count)
	moves := make([]move, count)
	for i := range moves {
		n := 1 + uint64(i)*7919%(slot-2)
		moves[i] = move{local: uint64(i)*slot + 1, remote: uint64(i*7%count) * slot, n: n}
	}
	slices.Reverse(moves)
	return moves
}

// do makes the moves and checks every byte of both regions.
func (p *pair) do(t *testing.T, op moonpath.Op, what string, moves []move, run func() error) {
	t.Helper()
	if err := run(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for _, m := range moves {
		to, from := p.target.want[m.remote:], p.initiator.want[m.local:m.local+m.n]
		if op == moonpath.OpRead {
			to, from = p.initiator.want[m.local:], p.target.want[m.remote:m.remote+m.n]
		}
		copy(to, from)
	}
	p.initiator.checkAll(t, what+": initiator's memory")
	p.target.checkAll(t, what+": target's memory")
}

func TestBatches(t *testing.T) {
	const size = 9 * mib // slots of 1,000 requests are then not of one small size
	pairs(t, size, func(t *testing.T, p *pair) {
		for _, count := range []int{1, 10, 100, 1000} {
			moves := scattered(count, size)
			for _, op := range bothOps {
				p.initiator.fill(t, 0, size, uint64(2*count))
				p.target.fill(t, 0, size, uint64(2*count+1))
				what := fmt.Sprintf("%v of %d requests", op, count)
				p.do(t, op, what, moves, func() error { return p.transfer(t, op, moves) })
			}
		}
	})
}

func TestFourSubmittersAtOnce(t *testing.T) {
	const size, submitters, rounds = 4 * mib, 4, 5
	pairs(t, size, func(t *testing.T, p *pair) {
		moves := scattered(4*25, size)
		var batches [][]move
		for part := range slices.Chunk(moves, len(moves)/submitters) {
			batches = append(batches, part)
		}
		for _, op := range bothOps {
			p.initiator.fill(t, 0, size, 20)
			p.target.fill(t, 0, size, 21)
			p.do(t, op, op.String(), moves, func() error { return p.concurrently(t, op, rounds, batches) })
		}
	})
}

func TestLengthZero(t *testing.T) {
	const size = 4096
	pairs(t, size, func(t *testing.T, p *pair) {
		for _, op := range bothOps {
			moves := []move{{1, 2, 0}, {100, 200, 300}, {size, size, 0}}
			p.do(t, op, op.String()+" with and without bytes", moves, func() error { return p.transfer(t, op, moves) })
			p.do(t, op, op.String()+" without bytes", moves[:1], func() error { return p.transfer(t, op, moves[:1]) })
		}
	})
}

// TestBatchBeyondTheQueueOfACxxEngine has more requests than a C++ initiator can have for one peer.
func TestBatchBeyondTheQueueOfACxxEngine(t *testing.T) {
	const size, count = 3 * mib, 5000
	p := newPairToCxx(t, size, nil)
	moves := scattered(count, size)
	for _, op := range bothOps {
		p.initiator.fill(t, 0, size, 30)
		p.target.fill(t, 0, size, 31)
		p.do(t, op, op.String(), moves, func() error { return p.transfer(t, op, moves) })
	}
}
