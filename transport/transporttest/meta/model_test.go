package meta

import (
	"bytes"
	"testing"
)

// The model is told of writes A and B, and asked which bytes may be there.
func TestModelKnowsWhatEachByteMayBe(t *testing.T) {
	whole := span{0, 0, 4}
	fill := func(b byte) []byte { return bytes.Repeat([]byte{b}, 4) }
	for name, c := range map[string]struct {
		history func(m *model)
		may     string // values that each byte may have; 'o' is what was there
	}{
		"nothing happened":                {func(*model) {}, "o"},
		"open":                            {func(m *model) { m.begin(whole, fill('A')) }, "oA"},
		"completed":                       {func(m *model) { m.complete(m.begin(whole, fill('A'))) }, "A"},
		"refused":                         {func(m *model) { m.refuse(m.begin(whole, fill('A'))) }, "o"},
		"settled":                         {func(m *model) { m.settle(m.begin(whole, fill('A'))) }, "oA"},
		"settled, then another completed": {func(m *model) { m.settle(m.begin(whole, fill('A'))); m.complete(m.begin(whole, fill('B'))) }, "B"},
		"unknown, then another completed": {func(m *model) { m.begin(whole, fill('A')); m.complete(m.begin(whole, fill('B'))) }, "AB"},
		"one after the other":             {func(m *model) { m.complete(m.begin(whole, fill('A'))); m.complete(m.begin(whole, fill('B'))) }, "B"},
		"at the same time, A completed first": {func(m *model) {
			a, b := m.begin(whole, fill('A')), m.begin(whole, fill('B'))
			m.complete(a)
			m.complete(b)
		}, "AB"},
		"at the same time, B completed first": {func(m *model) {
			a, b := m.begin(whole, fill('A')), m.begin(whole, fill('B'))
			m.complete(b)
			m.complete(a)
		}, "AB"},
		"at the same time, A refused": {func(m *model) {
			a, b := m.begin(whole, fill('A')), m.begin(whole, fill('B'))
			m.complete(b)
			m.refuse(a)
		}, "B"},
		"at the same time, then C": {func(m *model) {
			a, b := m.begin(whole, fill('A')), m.begin(whole, fill('B'))
			m.complete(a)
			m.complete(b)
			m.complete(m.begin(whole, fill('C')))
		}, "C"},
		"C begins before B has completed": {func(m *model) {
			a, b := m.begin(whole, fill('A')), m.begin(whole, fill('B'))
			m.complete(a)
			c := m.begin(whole, fill('C'))
			m.complete(b)
			m.complete(c)
		}, "BC"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &model{base: [][]byte{fill('o')}}
			c.history(m)
			for _, b := range []byte("oABC") {
				err := m.look(0, fill(b))
				if allowed := bytes.IndexByte([]byte(c.may), b) >= 0; allowed != (err == nil) {
					t.Errorf("%c: %v, want one of %s", b, err, c.may)
				}
			}
		})
	}
}

func TestModelCutsWhatIsReplacedInPart(t *testing.T) {
	m := &model{base: [][]byte{[]byte("oooooooo")}}
	m.settle(m.begin(span{0, 0, 8}, []byte("abcdefgh")))
	m.complete(m.begin(span{0, 3, 5}, []byte("XY")))
	for text, want := range map[string]bool{"oooXYooo": true, "abcXYfgh": true, "aboXYogh": true, "abcdYfgh": false, "oooXeooo": false, "bbcXYfgh": false, "abcXYfgg": false, "oooooooo": false} {
		if err := m.look(0, []byte(text)); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestReadBringsWhatWasThereMeanwhile(t *testing.T) {
	whole := span{0, 0, 1}
	m := &model{base: [][]byte{[]byte("o")}}
	m.complete(m.begin(whole, []byte("A")))
	before := m.begin(whole, []byte("B"))
	r := m.read(whole)
	m.complete(before)
	m.complete(m.begin(whole, []byte("C")))
	m.end(r)
	m.begin(whole, []byte("D"))
	for _, b := range "oABCD" {
		if err := r.check([]byte{byte(b)}, nil); (err == nil) != (b == 'A' || b == 'B' || b == 'C') {
			t.Errorf("%c: %v", b, err)
		}
		if err := r.check([]byte{byte(b)}, []byte("D")); (err == nil) != (b != 'o') {
			t.Errorf("%c in a buffer that held D: %v", b, err)
		}
	}
}
