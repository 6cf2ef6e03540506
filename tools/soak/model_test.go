package main

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestModelSetAndReset(t *testing.T) {
	m := newModel(100, 100)
	m.set(120, 10, 7)
	m.set(125, 10, 8)
	m.set(110, 5, tainted)
	m.set(105, 20, 7) // around and over what is tainted
	want := []span{{100, 105, zeros}, {105, 110, 7}, {110, 115, tainted}, {115, 125, 7}, {125, 135, 8}, {135, 200, zeros}}
	if diff := cmp.Diff(want, m.spans, cmp.AllowUnexported(span{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m.reset()
	if diff := cmp.Diff([]span{{100, 200, zeros}}, m.spans, cmp.AllowUnexported(span{})); diff != "" {
		t.Errorf("after reset (-want +got):\n%s", diff)
	}
}

// Random writes into a model and into real memory: each read agrees, and each byte that is changed by somebody else is found.
func TestModelAgreesWithMemory(t *testing.T) {
	const base, size = 1000, 5000
	random := rand.New(rand.NewPCG(1, 2))
	m, memory := newModel(base, size), make([]byte, size)
	for round := range 500 {
		off := random.Uint64N(size)
		n := 1 + random.Uint64N(size-off)
		part := memory[off : off+n]
		switch random.IntN(4) {
		case 0:
			m.set(base+off, n, unsure)
			fill(part, 0x7f)
		default:
			seed := 2 + random.Uint64N(100)
			fillPattern(part, seed, base+off)
			m.set(base+off, n, seed)
		}
		off = random.Uint64N(size)
		n = 1 + random.Uint64N(size-off)
		part = memory[off : off+n]
		certain, wrong := m.compare(part, base+off)
		if wrong >= 0 {
			t.Fatalf("round %d: byte %d is said to be wrong", round, wrong)
		}
		if certain == 0 {
			continue
		}
		sure := random.Uint64N(n)
		was := part[sure]
		part[sure] ^= 0x40
		if _, wrong := m.compare(part, base+off); wrong != int(sure) && m.at(base+off+sure) != unsure {
			t.Fatalf("round %d: byte %d was changed, and byte %d is said to be wrong", round, sure, wrong)
		}
		part[sure] = was
	}
}

func (m *model) at(off uint64) uint64 {
	for _, s := range m.spans {
		if off < s.end {
			return s.seed
		}
	}
	panic("outside of the model")
}

func TestPatternDependsOnSeedAndOffsetOnly(t *testing.T) {
	whole := make([]byte, 100)
	fillPattern(whole, 9, 1000)
	for from := range 20 {
		for to := from; to <= 100; to++ {
			part := make([]byte, to-from)
			fillPattern(part, 9, uint64(1000+from))
			if !cmp.Equal(part, whole[from:to]) {
				t.Fatalf("bytes %d to %d are not those of the whole", from, to)
			}
		}
	}
	if at := patternMismatch(whole, 9, 1000); at != -1 {
		t.Errorf("byte %d does not match itself", at)
	}
	whole[77] ^= 1
	if at := patternMismatch(whole, 9, 1000); at != 77 {
		t.Errorf("byte 77 was changed, and byte %d is said to be", at)
	}
}
