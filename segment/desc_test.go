package segment_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/wire/segjson"
)

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// full is a description with everything that travels, in the order of the wire.
func full() *segment.Desc {
	tcp, both, shm := []string{"tcp"}, []string{"tcp", "shm"}, []string{"shm"}
	return &segment.Desc{
		Name:      "10.0.0.1:15001",
		Protocols: []string{"tcp", "shm"},
		TCP:       segment.Endpoint{Host: "10.0.0.1", Port: 15002, Version: 2},
		Ext:       &segment.Extension{Incarnation: 0x0123456789abcdef, Host: "9f86d081884c7d65", HelloVersion: 1},
		Buffers: []segment.Buffer{
			{Addr: 0x1000, Len: 0x100, Location: "10.0.0.1:15001", Protocols: tcp},
			{Addr: 0x2000, Len: 0x100, Location: "10.0.0.1:15001", Protocols: tcp},
			{Addr: 0x3000, Len: 0x100, Location: "10.0.0.1:15001", Protocols: both},
			{Addr: 0x4000, Len: 0x100, Location: "10.0.0.1:15001", Protocols: shm},
			{Addr: 0x5000, Len: 0x100, Location: "10.0.0.1:15001", Protocols: shm},
			{Addr: 0x6000, Len: 0x100, Location: "10.0.0.1:15001"}, // served by nothing
			{Addr: 0x7000, Len: 0x100, Location: "10.0.0.1:15001", Protocols: tcp},
		},
	}
}

func TestDescriptionsSurviveTheWire(t *testing.T) {
	plain := full()
	plain.Ext, plain.Protocols, plain.Buffers = nil, []string{"tcp"}, plain.Buffers[:2]
	empty := full()
	empty.Buffers = []segment.Buffer{}
	for name, d := range map[string]*segment.Desc{"with extension": full(), "without": plain, "without buffers": empty} {
		t.Run(name, func(t *testing.T) {
			w := d.ToWire()
			if err := w.Validate(); err != nil {
				t.Fatal(err)
			}
			read, err := segjson.Parse(segjson.Append(nil, w))
			if err != nil {
				t.Fatal(err)
			}
			same(t, "description", segment.FromWire("10.0.0.1:15001", read), d)
		})
	}
}

func TestBuffersOfOneKindAreOneRun(t *testing.T) {
	w := full().ToWire()
	same(t, "runs", w.Moonpath.Runs, []segjson.BufferRun{{Count: 2, Mask: 1}, {Count: 1, Mask: 3}, {Count: 2, Mask: 2}, {Count: 1}, {Count: 1, Mask: 1}})
	same(t, "classic protocols", w.Protocols, []string{"tcp"})
	same(t, "schema", []int{w.Moonpath.Schema, w.Moonpath.Min}, []int{segjson.ExtensionSchema, segjson.ExtensionMin})
	many := &segment.Desc{Name: "n", Protocols: []string{"tcp"}, Ext: &segment.Extension{Incarnation: 1}}
	for i := range uint64(10_000) {
		many.Buffers = append(many.Buffers, segment.Buffer{Addr: 0x1000 + i*16, Len: 16, Protocols: many.Protocols})
	}
	same(t, "runs of 10,000 equal buffers", many.ToWire().Moonpath.Runs, []segjson.BufferRun{{Count: 10_000, Mask: 1}})
}

// Validation says what is missing; the conversion before it must not panic.
func TestDescriptionWithoutProtocolsIsRefused(t *testing.T) {
	var bad *segjson.FieldError
	if err := (&segment.Desc{Name: "n"}).ToWire().Validate(); !errors.As(err, &bad) || bad.Field != "protocols" {
		t.Errorf("Validate: %v", err)
	}
}

// The wire's order is the one that runs count in, whatever the order of the addresses.
func TestRunsCountInTheOrderOfTheWire(t *testing.T) {
	d := segment.FromWire("n", &segjson.Descriptor{
		Name: "n", Protocols: []string{"tcp"},
		Buffers:  []segjson.Buffer{{Name: "c", Addr: 300, Length: 10}, {Name: "a", Addr: 100, Length: 10}, {Name: "b", Addr: 200, Length: 10}},
		Moonpath: &segjson.Extension{Incarnation: 1, Protocols: []string{"tcp", "shm", "rdma"}, Runs: []segjson.BufferRun{{Count: 1, Mask: 5}, {Count: 2, Mask: 2}}},
	})
	same(t, "buffers", d.Buffers, []segment.Buffer{
		{Addr: 100, Len: 10, Location: "a", Protocols: []string{"shm"}},
		{Addr: 200, Len: 10, Location: "b", Protocols: []string{"shm"}},
		{Addr: 300, Len: 10, Location: "c", Protocols: []string{"tcp", "rdma"}},
	})
	same(t, "protocols", d.Protocols, []string{"tcp", "shm", "rdma"})
	same(t, "offers", []bool{d.Offers("shm"), d.Offers("efa")}, []bool{true, false})
}

// The decoder refuses runs that do not fit; whoever fills a descriptor by hand must not crash the conversion.
func TestRunsThatDoNotFitAreHarmless(t *testing.T) {
	w := func(runs ...segjson.BufferRun) *segjson.Descriptor {
		return &segjson.Descriptor{Protocols: []string{"tcp"}, Buffers: []segjson.Buffer{{Addr: 16, Length: 1}, {Addr: 32, Length: 1}},
			Moonpath: &segjson.Extension{Protocols: []string{"tcp"}, Runs: runs}}
	}
	served := func(runs ...segjson.BufferRun) (all [][]string) {
		for _, b := range segment.FromWire("n", w(runs...)).Buffers {
			all = append(all, b.Protocols)
		}
		return all
	}
	tcp := []string{"tcp"}
	same(t, "too many", served(segjson.BufferRun{Count: math.MaxInt, Mask: 0}), [][]string{nil, nil})
	same(t, "too few", served(segjson.BufferRun{Count: 1, Mask: 0}), [][]string{nil, tcp})
	same(t, "foreign bits", served(segjson.BufferRun{Count: 2, Mask: math.MaxUint64}), [][]string{tcp, tcp})
}

func TestHostOfTheDataPlane(t *testing.T) {
	for _, c := range []struct{ opened, name, data, want string }{
		{"opened:1", "named:2", "data", "data"},
		{"opened:1", "named:2", "", "opened"},
		{"[::1]:1", "named:2", "", "::1"},
		{"", "named:2", "", "named"},
		{":1", "named:2", "", "named"},
		{"", "", "", ""},
	} {
		d := segment.FromWire(c.opened, &segjson.Descriptor{Name: c.name, TCPDataHost: c.data, TCPDataPort: 9, TCPProtoVersion: 2})
		same(t, "endpoint", d.TCP, segment.Endpoint{Host: c.want, Port: 9, Version: 2})
	}
}

func TestBuffersMayNameTheirProtocol(t *testing.T) {
	d := segment.FromWire("n", &segjson.Descriptor{Protocols: []string{"rdma", "tcp"}, ExtensionError: errors.ErrUnsupported,
		Buffers: []segjson.Buffer{{Addr: 16, Length: 1}, {Addr: 32, Length: 1, Protocol: "efa"}}})
	same(t, "served by", [][]string{d.Buffers[0].Protocols, d.Buffers[1].Protocols}, [][]string{{"rdma", "tcp"}, {"efa"}})
	if d.ExtError != errors.ErrUnsupported || d.Ext != nil {
		t.Errorf("extension %v, error %v", d.Ext, d.ExtError)
	}
}

func TestOverlapsAreTrimmed(t *testing.T) {
	type b = segment.Buffer
	for _, c := range []struct {
		name      string
		in, wants []b
	}{
		{"apart", []b{{Addr: 10, Len: 10}, {Addr: 30, Len: 10}}, []b{{Addr: 10, Len: 10}, {Addr: 30, Len: 10}}},
		{"adjacent", []b{{Addr: 10, Len: 10}, {Addr: 20, Len: 10}}, []b{{Addr: 10, Len: 10}, {Addr: 20, Len: 10}}},
		{"out of order", []b{{Addr: 30, Len: 10}, {Addr: 10, Len: 10}}, []b{{Addr: 10, Len: 10}, {Addr: 30, Len: 10}}},
		{"tail", []b{{Addr: 10, Len: 10}, {Addr: 19, Len: 10}}, []b{{Addr: 10, Len: 10}, {Addr: 20, Len: 9}}},
		{"inside", []b{{Addr: 10, Len: 10}, {Addr: 12, Len: 3}}, []b{{Addr: 10, Len: 10}}},
		{"inside, at the end", []b{{Addr: 10, Len: 10}, {Addr: 19, Len: 1}}, []b{{Addr: 10, Len: 10}}},
		{"twice", []b{{Addr: 10, Len: 10, Location: "a"}, {Addr: 10, Len: 10, Location: "b"}}, []b{{Addr: 10, Len: 10, Location: "a"}}},
		{"same start, longer", []b{{Addr: 10, Len: 10, Location: "a"}, {Addr: 10, Len: 15, Location: "b"}}, []b{{Addr: 10, Len: 10, Location: "a"}, {Addr: 20, Len: 5, Location: "b"}}},
		{"behind one inside", []b{{Addr: 10, Len: 10}, {Addr: 12, Len: 3}, {Addr: 15, Len: 10}}, []b{{Addr: 10, Len: 10}, {Addr: 20, Len: 5}}},
		{"to the last address", []b{{Addr: math.MaxUint64 - 9, Len: 10}, {Addr: math.MaxUint64 - 4, Len: 5}}, []b{{Addr: math.MaxUint64 - 9, Len: 10}}},
	} {
		w := &segjson.Descriptor{}
		for _, x := range c.in {
			w.Buffers = append(w.Buffers, segjson.Buffer{Addr: x.Addr, Length: x.Len, Name: x.Location})
		}
		same(t, c.name, segment.FromWire("n", w).Buffers, c.wants)
	}
}

// Every byte that was published can be found, no other one can, and gaps end where the next buffer begins.
func TestFindAndGapAgreeWithTheList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &segjson.Descriptor{Buffers: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) segjson.Buffer {
			return segjson.Buffer{Addr: rapid.Uint64Range(1, 100).Draw(t, "address"), Length: rapid.Uint64Range(1, 30).Draw(t, "length")}
		}), 0, 8).Draw(t, "buffers")}
		published := func(a uint64) bool {
			return slices.ContainsFunc(w.Buffers, func(b segjson.Buffer) bool { return b.Addr <= a && a < b.Addr+b.Length })
		}
		d := segment.FromWire("n", w)
		for i, b := range d.Buffers {
			if i > 0 && d.Buffers[i-1].Addr+d.Buffers[i-1].Len > b.Addr {
				t.Fatalf("buffers %+v overlap or are out of order", d.Buffers)
			}
		}
		for a := range uint64(140) {
			b := d.Find(a)
			if (b != nil) != published(a) || b != nil && (a < b.Addr || a >= b.Addr+b.Len) {
				t.Fatalf("Find(%d) in %+v: %+v, published %v", a, d.Buffers, b, published(a))
			}
			gap := uint64(0)
			for gap < 200 && !published(a+gap) {
				gap++
			}
			if gap == 200 {
				gap = math.MaxUint64 - a
			}
			if got := d.Gap(a); got != gap {
				t.Fatalf("Gap(%d) in %+v is %d, want %d", a, d.Buffers, got, gap)
			}
		}
	})
}

func TestNearestBuffer(t *testing.T) {
	d := &segment.Desc{Buffers: []segment.Buffer{{Addr: 100, Len: 10}, {Addr: 200, Len: 10}, {Addr: math.MaxUint64 - 9, Len: 10}}}
	for addr, want := range map[uint64]uint64{0: 100, 99: 100, 100: 100, 109: 100, 154: 100, 155: 200, 199: 200, 205: 200, 210: 200,
		1 << 63: 200, math.MaxUint64 - 10: math.MaxUint64 - 9, math.MaxUint64: math.MaxUint64 - 9} {
		if got := d.Nearest(addr).Addr; got != want {
			t.Errorf("nearest to %d is %d, want %d", addr, got, want)
		}
	}
	if got := new(segment.Desc).Nearest(7); got != nil {
		t.Errorf("nearest of no buffers is %+v", got)
	}
}

func TestSameOwner(t *testing.T) {
	with := func(incarnation uint64, port uint16) *segment.Desc {
		return &segment.Desc{Ext: &segment.Extension{Incarnation: incarnation}, TCP: segment.Endpoint{Host: "h", Port: port}}
	}
	without := func(host string, port uint16) *segment.Desc {
		return &segment.Desc{TCP: segment.Endpoint{Host: host, Port: port}}
	}
	for name, c := range map[string]struct {
		a, b *segment.Desc
		want bool
	}{
		"one life, another port": {with(1, 1), with(1, 2), true},
		"another life":           {with(1, 1), with(2, 1), false},
		"old peer":               {without("h", 1), without("h", 1), true},
		"old peer, another port": {without("h", 1), without("h", 2), false},
		"old peer, another host": {without("h", 1), without("g", 1), false},
		"moonpath, then old":     {with(1, 1), without("h", 1), false},
		"old, then moonpath":     {without("h", 1), with(1, 1), false},
	} {
		if got := c.a.SameOwner(c.b); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
