package main

import (
	"bytes"
	"testing"
)

func TestPatternDependsOnThePositionAlone(t *testing.T) {
	whole := make([]byte, 100)
	fillPattern(whole, 1, 0)
	for from := range whole {
		for to := from; to <= len(whole); to++ {
			part := make([]byte, to-from)
			fillPattern(part, 1, uint64(from))
			if !bytes.Equal(part, whole[from:to]) {
				t.Fatalf("bytes %d to %d differ from those of the whole", from, to)
			}
			if i := findMismatch(part, 1, uint64(from)); i != -1 {
				t.Fatalf("bytes %d to %d: mismatch at %d", from, to, i)
			}
		}
	}
}

func TestEveryWrongByteIsFound(t *testing.T) {
	b := make([]byte, 50)
	for position := range uint64(9) {
		for i := range b {
			fillPattern(b, 7, position)
			b[i] ^= 1
			if got := findMismatch(b, 7, position); got != i {
				t.Fatalf("from position %d on: byte %d is wrong, found %d", position, i, got)
			}
		}
	}
}

func TestOtherPlaceAndOtherSeedDoNotPass(t *testing.T) {
	b := make([]byte, 4096)
	fillPattern(b, 7, 0)
	for _, c := range []struct{ seed, position uint64 }{{7, 1}, {7, 8}, {7, 4096}, {8, 0}} {
		if got := findMismatch(b, c.seed, c.position); got < 0 || got > 4 {
			t.Errorf("as seed %d at position %d: first mismatch %d, want one at once", c.seed, c.position, got)
		}
	}
}
