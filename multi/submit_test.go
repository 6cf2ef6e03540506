package multi

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/xfer"
)

// span is where a chunk lies, and in which queue.
type span struct {
	Local  xfer.Addr
	Remote uint64
	Len    uint64
	Queue  transport.Queue
}

func spans(f *fake.Transport) (all []span) {
	for _, c := range f.Taken() {
		all = append(all, span{c.Local, c.Remote, c.Len, c.Queue})
	}
	return all
}

func TestRequestsAreCutAtBorders(t *testing.T) {
	// Two adjacent regions, so that a request may go on in the second.
	const local = xfer.Addr(1) << 45
	regions := []mem.Spec{{Addr: local, Len: 1000}, {Addr: local + 1000, Len: 1 << 20}}
	// Two adjacent buffers, a gap of 100 bytes, a third buffer, nothing behind it.
	buffers := []segment.Buffer{{Addr: base, Len: 500}, {Addr: base + 500, Len: 500}, {Addr: base + 1100, Len: 1 << 20}}
	const end = base + 1100 + 1<<20
	for _, c := range []struct {
		name   string
		local  xfer.Addr
		remote uint64
		len    uint64
		want   []span
	}{
		{"inside", local + 1, base + 1, 10, []span{{local + 1, base + 1, 10, transport.Small}}},
		{"whole region and buffer", local + 500, base, 500, []span{{local + 500, base, 500, transport.Small}}},
		{"across regions", local + 990, base + 10, 30, []span{{local + 990, base + 10, 10, transport.Small}, {local + 1000, base + 20, 20, transport.Small}}},
		{"across buffers", local, base + 490, 30, []span{{local, base + 490, 10, transport.Small}, {local + 10, base + 500, 20, transport.Small}}},
		{"across both at once", local + 990, base + 490, 20, []span{{local + 990, base + 490, 10, transport.Small}, {local + 1000, base + 500, 10, transport.Small}}},
		{"across both apart", local + 995, base + 490, 20, []span{
			{local + 995, base + 490, 5, transport.Small}, {local + 1000, base + 495, 5, transport.Small}, {local + 1005, base + 500, 10, transport.Small}}},
		{"out of a buffer", local, base + 990, 20, []span{{local, base + 990, 10, transport.Small}, {local + 10, base + 1000, 10, transport.Suspect}}},
		{"over the gap", local, base + 990, 120, []span{
			{local, base + 990, 10, transport.Small}, {local + 10, base + 1000, 100, transport.Suspect}, {local + 110, base + 1100, 10, transport.Small}}},
		{"below all", local, base - 10, 10, []span{{local, base - 10, 10, transport.Suspect}}},
		{"into the first", local, base - 10, 20, []span{{local, base - 10, 10, transport.Suspect}, {local + 10, base, 10, transport.Small}}},
		{"behind all", local, end, 10, []span{{local, end, 10, transport.Suspect}}},
		{"last byte of all", local, math.MaxUint64 - 10, 10, []span{{local, math.MaxUint64 - 10, 10, transport.Suspect}}},
		{"largest small one", local + 1000, base + 1100, transport.SmallLimit, []span{{local + 1000, base + 1100, transport.SmallLimit, transport.Small}}},
		{"smallest large one", local + 1000, base + 1100, transport.SmallLimit + 1, []span{{local + 1000, base + 1100, transport.SmallLimit + 1, transport.Bulk}}},
		{"small tail of a large one", local + 1000, base + 490, transport.SmallLimit + 1, []span{
			{local + 1000, base + 490, 10, transport.Bulk}, {local + 1010, base + 500, 500, transport.Bulk},
			{local + 1510, base + 1000, 100, transport.Suspect}, {local + 1610, base + 1100, transport.SmallLimit + 1 - 610, transport.Bulk}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
			if _, err := r.regions.Register(regions); err != nil {
				t.Fatal(err)
			}
			to := r.open("peer", []string{"path"}, buffers...)
			b := r.batch(1)
			r.submit(b, xfer.Request{Op: xfer.Write, Local: c.local, Len: c.len, Target: to, Remote: c.remote})
			r.held(path, len(c.want))
			// Queues are served in their order, pieces of one queue in that of the request.
			var want []span
			for q := range transport.Queues {
				for _, s := range c.want {
					if s.Queue == q {
						want = append(want, s)
					}
				}
			}
			same(t, "chunks", spans(path), want)
			var leases int64
			for region := range r.regions.All() {
				leases += region.InUse()
			}
			same(t, "leases while the chunks are out", leases, int64(len(c.want)))
			path.StepAll()
			same(t, "status", r.status(b, 0), xfer.Status{State: xfer.Completed, Bytes: c.len})
		})
	}
}

func TestBuffersOfOnePeerAreNotTakenForAnothers(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
	one, two := r.open("one", []string{"path"}), r.open("two", []string{"path"}, segment.Buffer{Addr: 1 << 40, Len: 16})
	local := r.memory(64)
	b := r.batch(4)
	r.submit(b, writes(one, local, 1, 16)[0], writes(two, local, 1, 16)[0], writes(one, local, 1, 16)[0], writes(two, local, 1, 16)[0])
	r.held(path, 4)
	for _, c := range path.Taken() {
		if (c.Peer == "one") != (c.Queue == transport.Small) || (c.Peer == "two") != (c.Queue == transport.Suspect) {
			t.Errorf("%s: queue %v", c.Peer, c.Queue)
		}
	}
	path.StepAll()
}

func TestBadRequestsFailByThemselves(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path"})
	to := r.open("peer", []string{"path"})
	nowhere := r.open("nowhere", []string{"other", "path2"})
	closed := r.open("closed", []string{"path"})
	if _, err := r.cache.Close(closed); err != nil {
		t.Fatal(err)
	}
	local := r.memory(4096)
	good := func(r *xfer.Request) {}
	for _, c := range []struct {
		name  string
		spoil func(*xfer.Request)
		code  xfer.Code
		text  string
	}{
		{"good", good, xfer.OK, ""},
		{"stale segment", func(r *xfer.Request) { r.Target = closed }, xfer.InvalidArgument, "is not open in this engine"},
		{"foreign segment", func(r *xfer.Request) { r.Target = 1 << 40 }, xfer.InvalidArgument, "is not open in this engine"},
		{"no transport", func(r *xfer.Request) { r.Target = nowhere }, xfer.NotSupportedTransport, "other (installed: want other, have libother.so not found); path2 (installed"},
		{"operation", func(r *xfer.Request) { r.Op = 2 }, xfer.InvalidArgument, "operation 2 is neither read (0) nor write (1)"},
		{"operation", func(r *xfer.Request) { r.Op = 255 }, xfer.InvalidArgument, "operation 255"},
		{"good", good, xfer.OK, ""},
		{"local memory", func(r *xfer.Request) { r.Local = 4096 }, xfer.AddressNotRegistered, "local memory 0x1000 + 16 is not registered"},
		{"local memory ends", func(r *xfer.Request) { r.Local = local.At(4090) }, xfer.AddressNotRegistered, fmt.Sprintf("local memory %#x + 10 is not registered", uint64(local.At(4096)))},
		{"remote wraps", func(r *xfer.Request) { r.Remote = math.MaxUint64 - 14 }, xfer.InvalidArgument, "leaves the address space"},
		{"local wraps", func(r *xfer.Request) { r.Local = math.MaxUint64 - 14 }, xfer.InvalidArgument, "leaves the address space"},
		{"length", func(r *xfer.Request) { r.Len = math.MaxUint64 }, xfer.InvalidArgument, "leaves the address space"},
		{"length above 2^63", func(r *xfer.Request) { r.Len, r.Local, r.Remote = 1<<63, 0, 0 }, xfer.InvalidArgument, "leaves the address space"},
		{"unknown pin", func(r *xfer.Request) { r.Pin = 77 }, xfer.NotSupportedTransport, "a transport that is not known here"},
		{"good", good, xfer.OK, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, failed := len(path.Taken()), r.count.failed.Load()
			// The spoilt one is in the middle of good ones.
			rs := writes(to, local, 3, 16)
			c.spoil(&rs[1])
			b := r.batch(3)
			r.submit(b, rs...)
			err := b.Wait(t.Context())
			same(t, "code of Wait", xfer.CodeOf(err), c.code)
			for i := range rs {
				want := xfer.Status{State: xfer.Completed, Bytes: 16}
				if i == 1 && c.code != xfer.OK {
					want = xfer.Status{State: xfer.Failed, Err: err}
					f := r.fault(b, i)
					if !strings.Contains(f.Detail, c.text) || f.NextStep() == "" {
						t.Errorf("fault %v, want %q", f, c.text)
					}
				}
				if got := r.status(b, i); got != want {
					t.Errorf("task %d: %+v, want %+v", i, got, want)
				}
			}
			moved := 3
			if c.code != xfer.OK {
				moved = 2
			}
			same(t, "chunks", len(path.Taken())-before, moved)
			same(t, "failures counted", r.count.failed.Load()-failed, uint64(3-moved))
			same(t, "leases", local.InUse(), int64(0))

			all := r.batch(3)
			err = all.SubmitAll(t.Context(), rs)
			switch c.name {
			case "stale segment", "foreign segment", "no transport", "operation", "unknown pin":
				wants(t, "SubmitAll", err, c.code)
				if all.Len() != 0 || !strings.Contains(err.Error(), "request 1: ") || len(path.Taken())-before != moved {
					t.Errorf("SubmitAll left %d tasks and took %d chunks: %v", all.Len(), len(path.Taken())-before, err)
				}
			default: // as in Mooncake, such a failure shows in the task's status
				if err != nil || all.Len() != 3 {
					t.Errorf("SubmitAll: %v, %d tasks", err, all.Len())
				}
				same(t, "code of Wait", xfer.CodeOf(all.Wait(t.Context())), c.code)
			}
		})
	}
}

// Every reason is in the one error, up to sixteen rows.
func TestNoRouteListsAllReasons(t *testing.T) {
	r := newRig(t)
	r.install(fake.Options{Name: "full", Offers: fake.Rows(
		fake.Refused(transport.Reason{Code: "device", Want: "mlx5_0", Have: "none"}, transport.Reason{Code: "link", Want: "up", Have: "down"}))})
	r.install(fake.Options{Name: "reader", Offers: fake.Rows(transport.Offer{Ops: transport.OpSet(1 << xfer.Read), Local: []xfer.MemKind{xfer.HostMem}})})
	to := r.open("peer", []string{"rdma"})
	b := r.batch(1)
	wants(t, "SubmitAll", b.SubmitAll(t.Context(), writes(to, r.memory(16), 1, 16)), xfer.NotSupportedTransport)
	r.submit(b, writes(to, r.memory(16), 1, 16)...)
	f := r.fault(b, 0)
	same(t, "detail", f.Detail, "full (device: want mlx5_0, have none, link: want up, have down); "+
		"reader (operation: want write, have not offered by reader); rdma (installed: want rdma, have librdma.so not found)")
	if f.Stage != xfer.StageSelect || f.Peer != "peer" {
		t.Errorf("fault %+v", f)
	}
	q := b.Report().Requests[0]
	same(t, "rejections of the report", q.Rejected, []Rejection{
		{Path: "full", Reasons: []transport.Reason{{Code: "device", Want: "mlx5_0", Have: "none", Side: xfer.SideHere}, {Code: "link", Want: "up", Have: "down", Side: xfer.SideHere}}},
		{Path: "reader", Reasons: []transport.Reason{{Code: "operation", Want: "write", Have: "not offered by reader", Side: xfer.SideCaller}}},
		{Path: "rdma", Reasons: []transport.Reason{{Code: "installed", Want: "rdma", Have: "librdma.so not found",
			Side: xfer.SideHere, Next: "run moonpath info to see what the transport needs on this host"}}},
	})
	if q.Error != f.Error() || q.State != "failed" || q.Path != "" {
		t.Errorf("reported as %+v", q)
	}

	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprint("p", i))
	}
	r.submit(b) // nothing: the batch stays as it is
	wide := r.batch(1)
	r.submit(wide, writes(r.open("wide", many), r.memory(16), 1, 16)...)
	if d := r.fault(wide, 0).Detail; strings.Count(d, "; ") != maxReasons || !strings.HasSuffix(d, "; and more") {
		t.Errorf("%d rows in %q", strings.Count(d, "; "), d)
	}
	none := newRig(t)
	lonely := none.batch(1)
	none.submit(lonely, xfer.Request{Target: xfer.LocalSegment, Len: 1})
	if d := none.fault(lonely, 0).Detail; d != "no transport is installed and the peer offers none" {
		t.Errorf("without any row: %q", d)
	}
}

func TestOwnSegmentIsATarget(t *testing.T) {
	r := newRig(t)
	local := r.memory(4096)
	r.self.Store(&segment.Desc{Name: "self", Protocols: []string{"path"}, Buffers: []segment.Buffer{{Addr: uint64(local.Addr), Len: local.Len}}})
	path := r.install(fake.Options{Name: "path"})
	b := r.batch(1)
	r.submit(b, xfer.Request{Op: xfer.Write, Local: local.At(0), Len: 64, Target: xfer.LocalSegment, Remote: uint64(local.At(1024))})
	if err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "chunks", path.Taken(), []fake.Taken{{Peer: "self", Op: xfer.Write, Local: local.At(0), Remote: uint64(local.At(1024)), Len: 64}})
}

// Memory that the peer has not published may be there all the same. Such requests go on at once, apart from the
// others, and the description is fetched anew once, however many there are.
func TestUnpublishedMemoryIsSuspectAndRefreshesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		path := r.install(fake.Options{Name: "path"})
		to := r.open("peer", []string{"path"}, segment.Buffer{Addr: base, Len: 4096})
		local := r.memory(4096)
		late := xfer.Request{Op: xfer.Write, Local: local.At(0), Len: 16, Target: to, Remote: 1 << 30}
		submit := func(n int) transport.Queue {
			t.Helper()
			b := r.batch(n)
			for range n {
				r.submit(b, late)
			}
			if err := b.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			taken := path.Taken()
			return taken[len(taken)-1].Queue
		}
		same(t, "queue", submit(5), transport.Suspect)
		same(t, "look-ups", r.dir.asked(), 2) // one to open it
		same(t, "queue", submit(5), transport.Suspect)
		same(t, "look-ups within the pause", r.dir.asked(), 2)
		r.dir.set(&segment.Desc{Name: "peer", Protocols: []string{"path"}, Buffers: []segment.Buffer{{Addr: base, Len: 4096}, {Addr: 1 << 30, Len: 16}}})
		time.Sleep(refreshPause)
		same(t, "queue", submit(1), transport.Suspect)
		same(t, "look-ups after the pause", r.dir.asked(), 3)
		same(t, "queue once it is published", submit(1), transport.Small)
		time.Sleep(refreshPause)
		same(t, "queue once it is published", submit(1), transport.Small)
		same(t, "look-ups without need", r.dir.asked(), 3)
		// A peer that cannot be asked is no reason to fail.
		r.dir.set(&segment.Desc{Name: "other"})
		delete(r.dir.peers, "peer")
		late.Remote = 1 << 40
		same(t, "queue", submit(1), transport.Suspect)
		same(t, "look-ups", r.dir.asked(), 4)
	})
}

func TestEachFaultNamesItsPeer(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxQueued = 1 })
	path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold), Window: 1})
	one, two := r.open("one", []string{"path"}), r.open("two", []string{"path"})
	local := r.memory(4096)
	full := r.batch(2)
	r.submit(full, writes(one, local, 1, 16)...)
	r.held(path, 1)
	r.submit(full, writes(one, local, 1, 16)...)
	// The queue to one is full when the first request for two comes.
	b := r.batch(2)
	n, err := b.TrySubmit([]xfer.Request{writes(one, local, 1, 16)[0], writes(two, local, 1, 16)[0]})
	var f *xfer.Fault
	if !errors.As(err, &f) || f.Code != xfer.TooManyRequests || f.Peer != "one" || f.Path != "path" || n != 0 {
		t.Errorf("%d accepted, %v; want the peer one in the error", n, err)
	}
	path.StepAll()
}

// What a transport lacks on this host is this engine's business, although the peer offers the transport.
func TestMissingLibraryIsThisEnginesBusiness(t *testing.T) {
	r := newRig(t)
	to := r.open("peer", []string{"rdma"})
	b := r.batch(1)
	r.submit(b, writes(to, r.memory(16), 1, 16)...)
	f := r.fault(b, 0)
	d, err := r.Explain(to, xfer.Write, 16, xfer.NoPin)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "side and next step", []string{string(f.Side), f.Next}, []string{"here", "run moonpath info to see what the transport needs on this host"})
	same(t, "explained", []string{string(d.Side), d.Next}, []string{string(f.Side), f.Next})
}
