package main

import (
	"bytes"
	"encoding/binary"
)

// Payload bytes are below 0x80, so that poison is never payload.
const (
	payloadMask  = 0x7f7f7f7f7f7f7f7f
	localPoison  = 0xee // what the owner puts into local memory once a task has ended
	remotePoison = 0xdd // what the owner of the target puts into its memory once a write has completed
)

// fillPattern fills b with what memory at offset off holds after a write with that seed; each byte depends on the seed and its own
// offset only, so that any part can be compared by itself.
func fillPattern(b []byte, seed, off uint64) {
	var word [8]byte
	for len(b) > 0 {
		binary.LittleEndian.PutUint64(word[:], mix(seed, off/8)&payloadMask)
		n := copy(b, word[off%8:])
		b, off = b[n:], off+uint64(n)
		for len(b) >= 8 {
			binary.LittleEndian.PutUint64(b, mix(seed, off/8)&payloadMask)
			b, off = b[8:], off+8
		}
	}
}

// mix is a bijection of a sum, with which neighbours have nothing in common.
func mix(seed, n uint64) uint64 {
	x := seed*0x9e3779b97f4a7c15 + n
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return x ^ x>>32
}

// patternMismatch returns the first offset in b that does not hold the pattern, or -1.
func patternMismatch(b []byte, seed, off uint64) int {
	const step = 4096
	var want [step]byte
	for done := 0; done < len(b); done += step {
		part := b[done:min(done+step, len(b))]
		fillPattern(want[:len(part)], seed, off+uint64(done))
		if bytes.Equal(part, want[:len(part)]) {
			continue
		}
		for i := range part {
			if part[i] != want[i] {
				return done + i
			}
		}
	}
	return -1
}

func fill(b []byte, value byte) {
	for i := range b {
		b[i] = value
	}
}

// notFilled returns the first offset in b that holds another value, or -1.
func notFilled(b []byte, value byte) int {
	const step = 4096
	var want [step]byte
	fill(want[:min(step, len(b))], value)
	for done := 0; done < len(b); done += step {
		part := b[done:min(done+step, len(b))]
		if bytes.Equal(part, want[:len(part)]) {
			continue
		}
		for i := range part {
			if part[i] != value {
				return done + i
			}
		}
	}
	return -1
}
