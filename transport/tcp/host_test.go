package tcp

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// patience bounds everything that should happen at once.
const patience = 20 * time.Second

// host is a transport with the memory of its engine.
type host struct {
	t       testing.TB
	tr      *Transport
	regions *mem.Table
	env     transport.Env
	obs     *obs.Group
}

// settings are given as pairs of key and value.
func openHost(t testing.TB, settings ...string) *host {
	t.Helper()
	layer := config.Layer{Source: config.Code, Values: map[string]string{}}
	for i := 0; i < len(settings); i += 2 {
		layer.Values[settings[i]] = settings[i+1]
	}
	values, _, err := config.Resolve(slices.Concat(config.Engine, config.TCP), config.Lookup(nil), layer)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, regions: new(mem.Table), obs: obs.NewGroup()}
	h.env = transport.Env{Regions: h.regions, Incarnation: rand.Uint64() | 1, Bind: "127.0.0.1", Settings: values,
		Log: slog.New(slog.DiscardHandler), Obs: h.obs}
	h.tr, err = Open(t.Context(), h.env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := h.tr.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if ctx.Err() != nil {
			t.Error("the transport did not close in time")
		}
	})
	return h
}

// memory registers n bytes outside the Go heap, which stay mapped until the transport is closed.
func (h *host) memory(n uint64, remote bool) *mem.Region {
	h.t.Helper()
	m, err := mem.Map(n, false)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { m.Free() })
	return h.register(mem.Spec{Addr: mem.AddrOf(m.Bytes()), Len: n, Remote: remote})[0]
}

// lost registers memory that nobody can touch any more, as if it had been unmapped. Its addresses stay taken, so
// that nothing else comes to lie there.
func (h *host) lost(n uint64) *mem.Region {
	h.t.Helper()
	m, err := mem.Map(n, false)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { m.Free() })
	if err := unix.Mprotect(m.Bytes(), unix.PROT_NONE); err != nil {
		h.t.Fatal(err)
	}
	return h.register(mem.Spec{Addr: mem.AddrOf(m.Bytes()), Len: n, Remote: true})[0]
}

func (h *host) register(specs ...mem.Spec) []*mem.Region {
	h.t.Helper()
	rs, err := h.regions.Register(specs)
	if err != nil {
		h.t.Fatal(err)
	}
	return rs
}

// unregister waits until nobody uses the region; false if that takes longer than limit.
func (h *host) unregister(r *mem.Region, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	if h.regions.Close(ctx, []*mem.Region{r}) != nil {
		return false
	}
	h.regions.Remove([]*mem.Region{r})
	return true
}

// desc is the description of the host as a moonpath peer gets it.
func (h *host) desc() *segment.Desc {
	d := &segment.Desc{Name: "peer", TCP: segment.Endpoint{Host: "127.0.0.1"}, Ext: &segment.Extension{Incarnation: h.env.Incarnation}}
	for r := range h.regions.All() {
		if r.Remote {
			d.Buffers = append(d.Buffers, segment.Buffer{Addr: uint64(r.Addr), Len: r.Len})
		}
	}
	h.tr.Describe(d)
	return d
}

// plainDesc is the description without the moonpath object.
func (h *host) plainDesc() *segment.Desc {
	d := h.desc()
	d.Ext = nil
	return d
}

func (h *host) counter(group, name string) int64 {
	for _, s := range h.obs.Snapshot() {
		if s.Path == group && s.Name == name {
			return s.Value
		}
	}
	return 0
}

// dial opens a route to d that ends with the test.
func (h *host) dial(d *segment.Desc) (*route, *source) {
	h.t.Helper()
	r, s, err := h.tryDial(&peer{desc: d})
	if err != nil {
		h.t.Fatal(err)
	}
	return r, s
}

func (h *host) tryDial(p *peer) (*route, *source, error) {
	s := newSource(h.t)
	opened, err := h.tr.Dial(h.t.Context(), p, s)
	if err != nil {
		return nil, s, err
	}
	r := opened.(*route)
	s.route = r
	h.t.Cleanup(func() { quiesce(h.t, r) })
	return r, s, nil
}

// quiesce ends a route without patience for what is under way.
func quiesce(t testing.TB, r *route) transport.Quietness {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return quiesceWithin(t, r, ctx)
}

func quiesceWithin(t testing.TB, r *route, ctx context.Context) transport.Quietness {
	t.Helper()
	done := make(chan transport.Quietness, 1)
	go func() { done <- r.Quiesce(ctx) }()
	select {
	case q := <-done:
		return q
	case <-time.After(patience):
		t.Fatal("the route did not come to rest")
		return transport.Unquiet
	}
}

// within fails the test if c yields nothing in time.
func within[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: nothing happened for %v", what, patience)
		panic("not reached")
	}
}

// eventually polls a condition that no channel tells of.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// always checks that a condition that no channel tells of holds for a while.
func always(t testing.TB, while time.Duration, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(while); time.Now().Before(end); <-tick.C {
		if !holds() {
			t.Fatal(what)
		}
	}
}

// pattern fills b with bytes that differ from place to place and from seed to seed.
func pattern(b []byte, seed uint64) {
	p := rand.New(rand.NewPCG(seed, 1))
	for i := 0; i < len(b); i += 8 {
		v := p.Uint64()
		for j := i; j < min(i+8, len(b)); j++ {
			b[j] = byte(v >> (8 * (j - i)))
		}
	}
}

func patterned(n int, seed uint64) []byte {
	b := make([]byte, n)
	pattern(b, seed)
	return b
}

func codeOf(f *xfer.Fault) xfer.Code {
	if f == nil {
		return xfer.OK
	}
	return f.Code
}
