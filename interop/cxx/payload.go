package cxx

import (
	"bytes"

	"github.com/moonpath-io/moonpath/interop/transcript"
)

// shortest is the length from which bytes of a pattern are written as one; below it, hex is as readable.
const shortest = 64

// source is a pattern that occurs in payloads.
type source struct {
	seed  uint64
	bytes []byte
}

// payload is bytes, with hex for all that is no known pattern.
func (s *symbols) payload(b []byte) transcript.Message {
	var m transcript.Message
	plain := 0 // bytes before this one are items already
	for at := 0; at < len(b); {
		item, n := s.patternAt(b[at:])
		if n == 0 {
			at++
			continue
		}
		if plain < at {
			m = append(m, transcript.Hex(b[plain:at]))
		}
		m = append(m, item)
		at += n
		plain = at
	}
	if plain < len(b) {
		m = append(m, transcript.Hex(b[plain:]))
	}
	return m
}

// patternAt is the stretch of a known pattern that b begins with, or 0 if there is none of some length.
func (s *symbols) patternAt(b []byte) (i transcript.Item, n int) {
	if len(b) < shortest {
		return transcript.Item{}, 0
	}
	for _, src := range s.sources {
		from := bytes.Index(src.bytes, b[:shortest])
		if from < 0 {
			continue
		}
		n = shortest
		for n < len(b) && from+n < len(src.bytes) && b[n] == src.bytes[from+n] {
			n++
		}
		return transcript.Pattern(src.seed, uint64(from), uint64(from+n)), n
	}
	return transcript.Item{}, 0
}
