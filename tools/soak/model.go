package main

import (
	"slices"
)

// span is a stretch of a target's memory with one origin.
type span struct {
	off, end uint64
	seed     uint64
}

// Origins that are no seed of a pattern.
const (
	zeros   uint64 = 0              // as the target got it
	unsure  uint64 = ^uint64(0)     // some mixture, at rest: a new write makes it certain
	tainted uint64 = ^uint64(0) - 1 // some mixture, and an old write may still change it: uncertain until the process is gone
)

// model says what a stretch of a target's memory holds, as far as that is certain.
type model struct {
	spans []span // disjoint, ascending, without gaps
}

func newModel(off, n uint64) *model { return &model{[]span{{off, off + n, zeros}}} }

// reset is what a new process of the target has.
func (m *model) reset() {
	m.spans = []span{{m.spans[0].off, m.spans[len(m.spans)-1].end, zeros}}
}

// set notes what [off, off+n) holds now. What is tainted stays so.
func (m *model) set(off, n, seed uint64) {
	end := off + n
	out := make([]span, 0, len(m.spans)+2)
	for _, s := range m.spans {
		if s.end <= off || s.off >= end || s.seed == tainted {
			out = append(out, s)
			continue
		}
		if s.off < off {
			out = append(out, span{s.off, off, s.seed})
		}
		out = append(out, span{max(s.off, off), min(s.end, end), seed})
		if s.end > end {
			out = append(out, span{end, s.end, s.seed})
		}
	}
	m.spans = out
	m.join()
}

// join makes one of neighbours with the same origin.
func (m *model) join() {
	out := m.spans[:1]
	for _, s := range m.spans[1:] {
		if last := &out[len(out)-1]; last.seed == s.seed {
			last.end = s.end
		} else {
			out = append(out, s)
		}
	}
	m.spans = slices.Clip(out)
}

// compare looks at bytes that were read at off. It returns how many were certain, and the offset in b of the first that is
// wrong, or -1.
func (m *model) compare(b []byte, off uint64) (certain uint64, wrong int) {
	end := off + uint64(len(b))
	for _, s := range m.spans {
		from, to := max(s.off, off), min(s.end, end)
		if from >= to || s.seed == unsure || s.seed == tainted {
			continue
		}
		part, at := b[from-off:to-off], 0
		if s.seed == zeros {
			at = notFilled(part, 0)
		} else {
			at = patternMismatch(part, s.seed, from)
		}
		if at >= 0 {
			return certain, int(from-off) + at
		}
		certain += to - from
	}
	return certain, -1
}
