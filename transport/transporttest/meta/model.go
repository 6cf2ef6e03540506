package meta

import (
	"bytes"
	"fmt"
	"slices"
)

// span is a range of one slot.
type span struct {
	slot   int
	lo, hi uint64
}

func (a span) overlaps(b span) bool { return a.slot == b.slot && a.lo < b.hi && b.lo < a.hi }

func spanAt(p Place, n uint64) span { return span{p.Slot, p.Off, p.Off + n} }

// model is what is known about the target's memory: what each byte is, unless a layer says that it may be something else.
type model struct {
	base   [][]byte
	layers []*layer
	reads  []*reading // that are open
	now    int        // counts events
}

// layer is a write whose bytes may be there.
type layer struct {
	span
	bytes    []byte
	from, to int // events between which it could happen; to is 0 while it still can
}

// at returns the layer's byte at an offset of the slot.
func (l *layer) at(off uint64) byte { return l.bytes[off-l.lo] }

// reading is an open read with all that it may bring: what was there when it began, and what was written since.
type reading struct {
	span
	maybe []*layer
}

func (m *model) tick() int {
	m.now++
	return m.now
}

// begin notes that a write may happen from now on.
func (m *model) begin(s span, content []byte) *layer {
	l := &layer{span: s, bytes: bytes.Clone(content), from: m.tick()}
	m.layers = append(m.layers, l)
	for _, r := range m.reads {
		if r.overlaps(s) {
			r.maybe = append(r.maybe, l)
		}
	}
	return l
}

// complete notes that a write has happened, once or several times since it began, and will not any more. What it
// replaced for certain is forgotten: the base, and layers that had come to an end before it began.
func (m *model) complete(l *layer) {
	l.to = m.tick()
	copy(m.base[l.slot][l.lo:l.hi], l.bytes)
	concurrent := false
	var kept []*layer
	for _, o := range m.layers {
		switch {
		case o == l:
		case !o.overlaps(l.span):
			kept = append(kept, o)
		case o.to != 0 && o.to < l.from:
			kept = append(kept, o.without(l.span)...)
		default:
			// An open write that completes later takes the base; this one may have come after it.
			concurrent = concurrent || o.to == 0
			kept = append(kept, o)
		}
	}
	if concurrent {
		kept = append(kept, l)
	}
	m.layers = kept
}

// without returns what is left of a layer outside a span.
func (l *layer) without(s span) (rest []*layer) {
	if l.lo < s.lo {
		rest = append(rest, &layer{span{l.slot, l.lo, s.lo}, l.bytes[:s.lo-l.lo], l.from, l.to})
	}
	if s.hi < l.hi {
		rest = append(rest, &layer{span{l.slot, s.hi, l.hi}, l.bytes[s.hi-l.lo:], l.from, l.to})
	}
	return rest
}

// refuse notes that a write has not happened and will not.
func (m *model) refuse(l *layer) {
	m.layers = slices.DeleteFunc(m.layers, func(o *layer) bool { return o == l })
}

// settle notes that a write may have happened, in part, and will not any more.
func (m *model) settle(l *layer) { l.to = m.tick() }

// read notes that a read begins.
func (m *model) read(s span) *reading {
	r := &reading{span: s, maybe: []*layer{{span: s, bytes: bytes.Clone(m.base[s.slot][s.lo:s.hi])}}}
	for _, l := range m.layers {
		if l.overlaps(s) {
			r.maybe = append(r.maybe, l)
		}
	}
	m.reads = append(m.reads, r)
	return r
}

// end forgets a read.
func (m *model) end(r *reading) {
	m.reads = slices.DeleteFunc(m.reads, func(o *reading) bool { return o == r })
}

// check compares what a read brought with what it may bring. old is what its buffer held before, where that may still be
// there, else nil.
func (r *reading) check(got, old []byte) error {
	for i, b := range got {
		if old != nil && b == old[i] || may(r.maybe, r.slot, r.lo+uint64(i), b) {
			continue
		}
		return fmt.Errorf("byte %d of %d, remote slot %d offset %d, is %#02x, which was never there while it was read%s",
			i, len(got), r.slot, r.lo+uint64(i), b, choices(r.maybe, r.slot, r.lo+uint64(i)))
	}
	return nil
}

// look compares a slot of the target with the model.
func (m *model) look(slot int, got []byte) error {
	base := m.base[slot]
	if bytes.Equal(base, got) {
		return nil
	}
	for i, b := range got {
		if b != base[i] && !may(m.layers, slot, uint64(i), b) {
			return fmt.Errorf("remote slot %d offset %d is %#02x, want %#02x%s", slot, i, b, base[i], choices(m.layers, slot, uint64(i)))
		}
	}
	return nil
}

func may(layers []*layer, slot int, off uint64, b byte) bool {
	return slices.ContainsFunc(layers, func(l *layer) bool {
		return l.slot == slot && off >= l.lo && off < l.hi && l.at(off) == b
	})
}

func choices(layers []*layer, slot int, off uint64) string {
	text := ""
	for _, l := range layers {
		if l.slot == slot && off >= l.lo && off < l.hi {
			text += fmt.Sprintf(", or %#02x", l.at(off))
		}
	}
	return text
}
