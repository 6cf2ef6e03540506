package multi

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/xfer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a switchboard with all that an engine gives it, and no network.
type rig struct {
	*Multi
	t       testing.TB
	regions *mem.Table
	dir     *directory
	cache   *segment.Cache
	self    atomic.Pointer[segment.Desc]
	events  *obs.Recorder
	fakes   []*fake.Transport
}

// newRig returns a switchboard that is closed at the end of the test, which then checks that nothing is left:
// no lease, no chunk, no route.
func newRig(t testing.TB, change ...func(*Config)) *rig {
	r := &rig{t: t, regions: new(mem.Table), dir: &directory{peers: make(map[string]*segment.Desc)}, events: obs.NewRecorder(64)}
	r.cache = segment.NewCache(r.dir)
	r.self.Store(&segment.Desc{Name: "self"})
	c := Config{
		Regions: r.regions, Peers: r.cache, Self: r.self.Load, MaxQueued: 1 << 16,
		Absent: func(name string) transport.Availability {
			return transport.Availability{State: transport.Absent, Code: "library", Reason: "lib" + name + ".so not found"}
		},
		Log: slog.New(slog.DiscardHandler), Obs: obs.NewGroup(), Events: r.events,
	}
	for _, f := range change {
		f(&c)
	}
	r.Multi = New(c)
	t.Cleanup(r.finish)
	return r
}

func (r *rig) finish() {
	r.Close(context.Background())
	for _, f := range r.fakes {
		if err := f.Close(context.Background()); err != nil {
			r.t.Errorf("%s: %v", f.Name(), err)
		}
		if n := f.Held(); n != 0 {
			r.t.Errorf("%s holds %d chunks after Close", f.Name(), n)
		}
	}
	rs := slices.Collect(r.regions.All())
	for _, region := range rs {
		if n := region.InUse(); n != 0 {
			r.t.Errorf("region %d has %d leases after Close", region.ID, n)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if r.regions.Close(ended, rs) == nil {
		r.regions.Remove(rs)
	}
}

// install adds a fake transport.
func (r *rig) install(o fake.Options) *fake.Transport {
	r.t.Helper()
	f := fake.New(o)
	if err := r.Install(r.t.Context(), f); err != nil {
		r.t.Fatal(err)
	}
	r.fakes = append(r.fakes, f)
	return f
}

// open opens a peer that offers protocols; without buffers it publishes [base, base + 1 MiB).
func (r *rig) open(name string, protocols []string, buffers ...segment.Buffer) xfer.SegmentID {
	r.t.Helper()
	if buffers == nil {
		buffers = []segment.Buffer{{Addr: base, Len: 1 << 20}}
	}
	r.dir.set(&segment.Desc{Name: name, Protocols: protocols, Buffers: buffers})
	p, err := r.cache.Open(r.t.Context(), name)
	if err != nil {
		r.t.Fatal(err)
	}
	return p.ID
}

// base is the address of the buffer that peers publish.
const base = 0x10000

// memory registers n bytes, with the transports, too.
func (r *rig) memory(n int) *mem.Region {
	r.t.Helper()
	rs, err := r.regions.Register([]mem.Spec{{Bytes: make([]byte, n)}})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, transport := range r.Installed() {
		if err := transport.Attach(r.t.Context(), rs); err != nil {
			r.t.Fatal(err)
		}
	}
	return rs[0]
}

// steps completes n chunks one by one, so that each makes room for the next.
func steps(f *fake.Transport, n int) (done int) {
	for range n {
		done += f.Step(1)
	}
	return done
}

// batch returns a batch without deadline that is closed at the end of the test.
func (r *rig) batch(capacity int) *Batch {
	r.t.Helper()
	b, err := r.NewBatch(capacity, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// writes are n requests of size bytes each, one after the other in local and remote memory.
func writes(to xfer.SegmentID, local *mem.Region, n int, size uint64) []xfer.Request {
	rs := make([]xfer.Request, n)
	for i := range rs {
		rs[i] = xfer.Request{Op: xfer.Write, Local: local.At(uint64(i) * size), Len: size, Target: to, Remote: base + uint64(i)*size}
	}
	return rs
}

// submit hands requests over; all of them have to be accepted.
func (r *rig) submit(b *Batch, rs ...xfer.Request) {
	r.t.Helper()
	if n, err := b.Submit(r.t.Context(), rs); err != nil || n != len(rs) {
		r.t.Fatalf("Submit of %d requests: %d accepted, %v", len(rs), n, err)
	}
}

// held waits until a transport holds n chunks.
func (r *rig) held(f *fake.Transport, n int) {
	r.t.Helper()
	if err := f.AwaitHeld(r.t.Context(), n); err != nil {
		r.t.Fatal(err)
	}
}

// states lists the states of a batch's tasks.
func states(b *Batch) (all []xfer.State) {
	for i := range b.Len() {
		s, _ := b.Status(i)
		all = append(all, s.State)
	}
	return all
}

// repeated returns n times the same state.
func repeated(s xfer.State, n int) []xfer.State { return slices.Repeat([]xfer.State{s}, n) }

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// wants checks the code of an error.
func wants(t testing.TB, what string, err error, code xfer.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Errorf("%s: error %v, want %s", what, err, code.Name())
	}
}

// status returns the status of one task.
func (r *rig) status(b *Batch, i int) xfer.Status {
	r.t.Helper()
	s, err := b.Status(i)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// fault returns the fault of one task.
func (r *rig) fault(b *Batch, i int) *xfer.Fault {
	r.t.Helper()
	var f *xfer.Fault
	if !errors.As(r.status(b, i).Err, &f) {
		r.t.Fatalf("task %d has no fault: %+v", i, r.status(b, i))
	}
	return f
}

// directory is a segment.Directory in memory.
type directory struct {
	mu      sync.Mutex
	peers   map[string]*segment.Desc
	lookups int
	linger  func(context.Context) // called first, if not nil
}

func (d *directory) set(desc *segment.Desc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.peers[desc.Name] = desc
}

func (d *directory) asked() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lookups
}

func (d *directory) Publish(context.Context, func() *segment.Desc) error { return nil }
func (d *directory) Withdraw(context.Context) error                      { return nil }

func (d *directory) Lookup(ctx context.Context, name string) (*segment.Desc, error) {
	if d.linger != nil {
		d.linger(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lookups++
	desc := d.peers[name]
	if desc == nil {
		return nil, &xfer.Fault{Code: xfer.Metadata, Stage: xfer.StageResolve, Peer: name, Detail: "no such peer"}
	}
	fresh := *desc
	return &fresh, nil
}
