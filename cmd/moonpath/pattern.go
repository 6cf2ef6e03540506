package main

import "encoding/binary"

// Every byte of a pattern depends on the seed and on its position, so bytes that land in the wrong place, and those
// of another round, do not pass for the right ones. Positions are those in the peer's buffer.

// patternWord returns the eight bytes at positions 8i to 8i+7: the finisher of a 64-bit mixing generator, whose
// output for neighbouring inputs has nothing in common.
func patternWord(seed, i uint64) uint64 {
	x := seed + (i+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func patternByte(seed, position uint64) byte {
	return byte(patternWord(seed, position/8) >> (8 * (position % 8)))
}

// fillPattern writes the pattern from position on into b.
func fillPattern(b []byte, seed, position uint64) {
	for ; len(b) > 0 && position%8 != 0; b, position = b[1:], position+1 {
		b[0] = patternByte(seed, position)
	}
	for ; len(b) >= 8; b, position = b[8:], position+8 {
		binary.LittleEndian.PutUint64(b, patternWord(seed, position/8))
	}
	for i := range b {
		b[i] = patternByte(seed, position+uint64(i))
	}
}

// findMismatch returns the index of the first byte of b that is not the pattern's, or -1.
func findMismatch(b []byte, seed, position uint64) int {
	for i := 0; i < len(b); {
		at := position + uint64(i)
		if at%8 == 0 && len(b)-i >= 8 && binary.LittleEndian.Uint64(b[i:]) == patternWord(seed, at/8) {
			i += 8
			continue
		}
		if b[i] != patternByte(seed, at) {
			return i
		}
		i++
	}
	return -1
}
