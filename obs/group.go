package obs

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Group names counters, gauges and histograms and further groups: one per engine, transport,
// peer and lane. All methods may be called from any goroutine; those that name something take
// a lock and belong to set-up, after which the hot path keeps the pointer it got.
type Group struct {
	path string

	mu     sync.Mutex
	groups map[string]*Group
	values map[string]source
}

// source appends its samples, with path and name given, to dst.
type source interface {
	sample(path, name string, dst []Sample) []Sample
}

// Sample is one number of a snapshot.
type Sample struct {
	Path  string `json:"path"` // names of the groups, joined by "/"; empty for the root
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

// NewGroup returns an empty root. Its own values have an empty path.
func NewGroup() *Group { return &Group{} }

// Group returns the sub-group of that name and makes it on first use.
func (g *Group) Group(name string) *Group {
	g.mu.Lock()
	defer g.mu.Unlock()
	sub := g.groups[name]
	if sub == nil {
		sub = &Group{path: strings.TrimPrefix(g.path+"/"+name, "/")}
		if g.groups == nil {
			g.groups = make(map[string]*Group)
		}
		g.groups[name] = sub
	}
	return sub
}

// Remove drops the sub-group of that name, with all in it, from later snapshots. Pointers
// into it stay usable; nothing happens if there is none.
func (g *Group) Remove(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.groups, name)
}

// Counter returns the counter of that name and makes it on first use. A name that belongs to
// another type is a programming error and panics, here and in the next three methods.
func (g *Group) Counter(name string) *Counter {
	return named(g, name, func() *Counter { return new(Counter) })
}

// Gauge returns the gauge of that name and makes it on first use.
func (g *Group) Gauge(name string) *Gauge { return named(g, name, func() *Gauge { return new(Gauge) }) }

// Histogram returns the histogram of that name and makes it on first use. A snapshot shows it
// as name.count, name.mean, name.p50, name.p99, name.p999 and name.max, times in nanoseconds.
func (g *Group) Histogram(name string) *Histogram {
	return named(g, name, func() *Histogram { return new(Histogram) })
}

// Func names a number that is read at each snapshot, such as the length of a queue that has
// its own lock. read is called with no lock of the group held. The first function of a name
// stays.
func (g *Group) Func(name string, read func() int64) {
	named(g, name, func() gaugeFunc { return read })
}

func named[T source](g *Group, name string, create func() T) T {
	g.mu.Lock()
	defer g.mu.Unlock()
	if known, ok := g.values[name]; ok {
		value, ok := known.(T)
		if !ok {
			panic("obs: " + g.path + " uses the name " + name + " for two types")
		}
		return value
	}
	value := create()
	if g.values == nil {
		g.values = make(map[string]source)
	}
	g.values[name] = value
	return value
}

// Snapshot reads everything in this group and below, sorted by path, then name.
func (g *Group) Snapshot() []Sample {
	samples := g.collect(nil)
	slices.SortFunc(samples, func(a, b Sample) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return samples
}

func (g *Group) collect(dst []Sample) []Sample {
	g.mu.Lock()
	values, groups := maps.Clone(g.values), slices.Collect(maps.Values(g.groups))
	g.mu.Unlock()
	for name, v := range values {
		dst = v.sample(g.path, name, dst)
	}
	for _, sub := range groups {
		dst = sub.collect(dst)
	}
	return dst
}

type gaugeFunc func() int64

func (c *Counter) sample(path, name string, dst []Sample) []Sample {
	return append(dst, Sample{path, name, int64(c.Load())})
}

func (g *Gauge) sample(path, name string, dst []Sample) []Sample {
	return append(dst, Sample{path, name, g.Load()})
}

func (f gaugeFunc) sample(path, name string, dst []Sample) []Sample {
	return append(dst, Sample{path, name, f()})
}

func (h *Histogram) sample(path, name string, dst []Sample) []Sample {
	d := h.Snapshot()
	return append(dst,
		Sample{path, name + ".count", int64(d.Count)},
		Sample{path, name + ".max", d.Max},
		Sample{path, name + ".mean", d.Mean()},
		Sample{path, name + ".p50", d.P50()},
		Sample{path, name + ".p99", d.P99()},
		Sample{path, name + ".p999", d.P999()},
	)
}
