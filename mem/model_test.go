package mem

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/moonpath-io/moonpath/xfer"
)

// span is a registration in the model.
type span struct {
	start xfer.Addr
	len   uint64
}

func (s span) end() xfer.Addr { return s.start + xfer.Addr(s.len) }

// model is the table as one would write it without a care for speed.
type model []span

// add registers all of ss or none.
func (m *model) add(ss []span) bool {
	all := slices.Clone(*m)
	for _, s := range ss {
		if s.len == 0 || slices.ContainsFunc(all, func(o span) bool { return s.start < o.end() && o.start < s.end() }) {
			return false
		}
		all = append(all, s)
	}
	*m = all
	return true
}

func (m *model) remove(start xfer.Addr) bool {
	n := len(*m)
	*m = slices.DeleteFunc(*m, func(s span) bool { return s.start == start })
	return len(*m) < n
}

func (m *model) holds(a xfer.Addr, n uint64) bool {
	return slices.ContainsFunc(*m, func(s span) bool { return s.start <= a && a < s.end() && n <= uint64(s.end()-a) })
}

func (m *model) starts() (all []xfer.Addr) {
	for _, s := range *m {
		all = append(all, s.start)
	}
	slices.Sort(all)
	return all
}

func TestTableEqualsAPlainList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table
		var plain model
		address := rapid.Custom(func(t *rapid.T) xfer.Addr { return far + xfer.Addr(rapid.IntRange(0, 300).Draw(t, "offset")) })
		length := rapid.Uint64Range(0, 40)
		t.Repeat(map[string]func(*rapid.T){
			"register": func(t *rapid.T) {
				spans := make([]span, rapid.IntRange(1, 4).Draw(t, "regions"))
				specs := make([]Spec, len(spans))
				for i := range spans {
					spans[i] = span{address.Draw(t, "start"), length.Draw(t, "length")}
					specs[i] = Spec{Addr: spans[i].start, Len: spans[i].len}
				}
				_, err := table.Register(specs)
				if want := plain.add(spans); (err == nil) != want {
					t.Fatalf("registering %v: %v, want success %v", spans, err, want)
				}
			},
			"unregister": func(t *rapid.T) {
				a := address.Draw(t, "start")
				if rapid.Bool().Draw(t, "known") && len(plain) > 0 {
					a = rapid.SampledFrom(plain).Draw(t, "of").start
				}
				rs, err := table.Lookup([]xfer.Addr{a})
				if err == nil {
					err = table.Close(t.Context(), rs)
					table.Remove(rs)
				}
				if want := plain.remove(a); (err == nil) != want {
					t.Fatalf("unregistering %#x: %v, want success %v", a, err, want)
				}
			},
			"acquire": func(t *rapid.T) {
				a, n := address.Draw(t, "start"), rapid.Uint64Range(1, 40).Draw(t, "length")
				l, err := table.Acquire(a, n)
				if want := plain.holds(a, n); (err == nil) != want {
					t.Fatalf("acquiring %#x + %d: %v, want success %v", a, n, err, want)
				}
				if err == nil {
					if !l.Region.Contains(a, n) {
						t.Fatalf("acquiring %#x + %d gives the region %#x + %d", a, n, l.Region.Addr, l.Region.Len)
					}
					l.Release(1)
				}
			},
			"": func(t *rapid.T) {
				if got, want := starts(&table), plain.starts(); !slices.Equal(got, want) {
					t.Fatalf("regions start at %#x, want %#x", got, want)
				}
				if table.Count() != len(plain) {
					t.Fatalf("Count is %d, want %d", table.Count(), len(plain))
				}
			},
		})
	})
}
