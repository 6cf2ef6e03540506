package segment_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/xfer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listed is a directory in memory.
type listed struct {
	mu     sync.Mutex
	descs  map[string]*segment.Desc
	err    error // of every look-up, if not nil
	counts map[string]int
}

func (l *listed) Publish(context.Context, func() *segment.Desc) error { return nil }
func (l *listed) Withdraw(context.Context) error                      { return nil }

func (l *listed) Lookup(_ context.Context, name string) (*segment.Desc, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[name]++
	if l.err != nil {
		return nil, l.err
	}
	d := l.descs[name]
	if d == nil {
		d = &segment.Desc{Name: name, Protocols: []string{"tcp"}}
	}
	fresh := *d
	return &fresh, nil
}

func newListed() *listed {
	return &listed{descs: make(map[string]*segment.Desc), counts: make(map[string]int)}
}

func open(t *testing.T, c *segment.Cache, name string) *segment.Peer {
	t.Helper()
	p, err := c.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestHandlesCountFromOneAndCarryAGeneration(t *testing.T) {
	dir := newListed()
	c := segment.NewCache(dir)
	for i, name := range []string{"a", "b", "c"} {
		same(t, "id", open(t, c, name).ID, xfer.SegmentID(i+1))
	}
	b := open(t, c, "b")
	same(t, "id when opened again", b.ID, xfer.SegmentID(2))
	same(t, "look-ups of b", dir.counts["b"], 1)
	if c.ByName("b") != b || c.ByName("z") != nil {
		t.Error("ByName finds other peers")
	}
	closed, err := c.Close(b.ID)
	if err != nil || closed != b {
		t.Fatalf("Close: %v, %v", closed, err)
	}
	if c.ByName("b") != nil {
		t.Error("a closed peer is found by name")
	}
	d := open(t, c, "d")
	same(t, "id of the index in use again", d.ID, xfer.SegmentID(1<<32|2))
	same(t, "next id", open(t, c, "b").ID, xfer.SegmentID(4))
	var names []string
	for _, p := range c.Peers() {
		names = append(names, p.Name)
	}
	same(t, "peers", names, []string{"a", "d", "c", "b"})

	for _, id := range []xfer.SegmentID{0, 2, 5, 1 << 32, 1<<32 | 1, 2<<32 | 2, math.MaxUint32, math.MaxUint64} {
		for what, call := range map[string]func(xfer.SegmentID) (*segment.Peer, error){"Get": c.Get, "Close": c.Close} {
			p, err := call(id)
			if !errors.Is(err, xfer.InvalidArgument) || p != nil {
				t.Errorf("%s(%#x): %v, %v", what, uint64(id), p, err)
			}
		}
	}
	if p, err := c.Get(d.ID); p != d || err != nil {
		t.Errorf("Get: %v, %v", p, err)
	}
}

func TestOpenFailsAndForgets(t *testing.T) {
	dir := newListed()
	c := segment.NewCache(dir)
	_, err := c.Open(t.Context(), "")
	if !errors.Is(err, xfer.InvalidArgument) {
		t.Errorf("empty name: %v", err)
	}
	refused := &xfer.Fault{Code: xfer.Socket, Stage: xfer.StageResolve, Peer: "a", Detail: "connection refused"}
	for what, c2 := range map[string]struct {
		err  error
		code xfer.Code
	}{
		"a fault stands as it is":   {refused, xfer.Socket},
		"a wrapped one, too":        {fmt.Errorf("asking: %w", refused), xfer.Socket},
		"a bare code":               {xfer.DNS, xfer.DNS},
		"an error without any code": {errors.New("no"), xfer.Metadata},
	} {
		dir.err = c2.err
		_, err := c.Open(t.Context(), "a")
		var f *xfer.Fault
		if !errors.As(err, &f) || f.Code != c2.code || f.Peer != "a" || f.Stage != xfer.StageResolve || !errors.Is(err, c2.code) {
			t.Errorf("%s: %v", what, err)
		}
		if c.ByName("a") != nil || len(c.Peers()) != 0 {
			t.Errorf("%s: the failure is remembered", what)
		}
	}
	dir.err = nil
	same(t, "id once it works", open(t, c, "a").ID, xfer.SegmentID(1))
}

func TestRefreshReplacesAndNumbersWhatChanged(t *testing.T) {
	dir := newListed()
	c := segment.NewCache(dir)
	p, other := open(t, c, "a"), open(t, c, "b")
	first := p.Desc()
	if other.Desc().Gen <= first.Gen {
		t.Errorf("generations %d, then %d", first.Gen, other.Desc().Gen)
	}
	d, err := p.Refresh(t.Context())
	if err != nil || d != first {
		t.Errorf("unchanged: %+v, %v; want the same description", d, err)
	}
	changes := []func(*segment.Desc){
		func(d *segment.Desc) { d.Name = "renamed" },
		func(d *segment.Desc) { d.Protocols = []string{"tcp", "shm"} },
		func(d *segment.Desc) { d.TCP.Port = 7 },
		func(d *segment.Desc) { d.TCP.Version = 2 },
		func(d *segment.Desc) { d.Ext = &segment.Extension{Incarnation: 1} },
		func(d *segment.Desc) { d.Ext = &segment.Extension{Incarnation: 2} },
		func(d *segment.Desc) { d.Ext = nil },
		func(d *segment.Desc) { d.Buffers = []segment.Buffer{{Addr: 1, Len: 1}} },
		func(d *segment.Desc) { d.Buffers = []segment.Buffer{{Addr: 2, Len: 1}} },
		func(d *segment.Desc) { d.Buffers = []segment.Buffer{{Addr: 2, Len: 2}} },
		func(d *segment.Desc) { d.Buffers = []segment.Buffer{{Addr: 2, Len: 2, Location: "cpu:0"}} },
		func(d *segment.Desc) {
			d.Buffers = []segment.Buffer{{Addr: 2, Len: 2, Location: "cpu:0", Protocols: []string{"tcp"}}}
		},
		func(d *segment.Desc) { d.Buffers = nil },
	}
	last := *first
	for i, change := range changes {
		next := last
		change(&next)
		dir.descs["a"] = &next
		before := p.Desc()
		got, err := p.Refresh(t.Context())
		if err != nil || got == before || got != p.Desc() || got.Gen <= before.Gen {
			t.Errorf("change %d: %+v after %+v, %v", i, got, before, err)
		}
		if again, _ := p.Refresh(t.Context()); again != got {
			t.Errorf("change %d: it is taken for another one when it is fetched again", i)
		}
		last = next
	}
	kept := p.Desc()
	dir.err = xfer.Socket
	d, err = p.Refresh(t.Context())
	if !errors.Is(err, xfer.Socket) || d != kept || p.Desc() != kept {
		t.Errorf("a failed refresh: %v, %v", d, err)
	}
	if age := p.Age(); age < 0 || age > time.Minute {
		t.Errorf("age %v", age)
	}
}

// meeting is a directory whose look-ups return once two are under way.
type meeting struct {
	*listed
	both sync.WaitGroup
}

func (m *meeting) Lookup(ctx context.Context, name string) (*segment.Desc, error) {
	m.both.Done()
	m.both.Wait()
	return m.listed.Lookup(ctx, name)
}

func TestOneNameIsOneSegment(t *testing.T) {
	dir := &meeting{listed: newListed()}
	dir.both.Add(2)
	c := segment.NewCache(dir)
	var peers [2]*segment.Peer
	var all sync.WaitGroup
	for i := range peers {
		all.Go(func() { peers[i], _ = c.Open(t.Context(), "a") })
	}
	all.Wait()
	if peers[0] != peers[1] || peers[0] == nil || peers[0].ID != 1 || len(c.Peers()) != 1 {
		t.Errorf("two at once open %+v and %+v; %d are open", peers[0], peers[1], len(c.Peers()))
	}
}

func TestOneOfManyCloses(t *testing.T) {
	c := segment.NewCache(newListed())
	for range 500 {
		id := open(t, c, "a").ID
		var closed atomic.Int32
		var all sync.WaitGroup
		start := make(chan struct{})
		for range 4 {
			all.Go(func() {
				<-start
				if _, err := c.Close(id); err == nil {
					closed.Add(1)
				} else if !errors.Is(err, xfer.InvalidArgument) {
					t.Errorf("Close: %v", err)
				}
			})
		}
		close(start)
		all.Wait()
		if closed.Load() != 1 {
			t.Fatalf("%d of 4 closed the segment", closed.Load())
		}
	}
}

func TestManyOpenAndCloseAtOnce(t *testing.T) {
	c := segment.NewCache(newListed())
	keep := open(t, c, "keep")
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 300 {
				name := fmt.Sprint("n", (g+i)%5)
				p, err := c.Open(t.Context(), name)
				if err != nil || p.Name != name {
					t.Errorf("Open(%q): %v, %v", name, p, err)
					return
				}
				if got, err := c.Get(p.ID); err == nil && got != p {
					t.Errorf("id %d is %q and %q", p.ID, p.Name, got.Name)
				}
				if _, err := c.Close(p.ID); err != nil && !errors.Is(err, xfer.InvalidArgument) {
					t.Errorf("Close: %v", err)
				}
				if got, err := c.Get(keep.ID); got != keep || err != nil {
					t.Errorf("the peer that stays: %v, %v", got, err)
				}
			}
		})
	}
	all.Wait()
	same(t, "open peers", len(c.Peers()), 1)
	ids := make(map[xfer.SegmentID]bool)
	for i := range 20 {
		p := open(t, c, fmt.Sprint("m", i))
		if ids[p.ID] || p.ID == keep.ID {
			t.Errorf("id %d is given twice", p.ID)
		}
		ids[p.ID] = true
	}
}
