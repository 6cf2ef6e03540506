package multi

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/xfer"
)

// priced is a path that every peer can use, at that price.
func priced(name string, setup, perMiB time.Duration) fake.Options {
	return fake.Options{Name: name, Offers: fake.Rows(fake.Usable(transport.Cost{Setup: setup, PerMiB: perMiB, Origin: "declared"}))}
}

// pathOf moves one request and returns its entry in the report.
func (r *rig) pathOf(q xfer.Request) RequestReport {
	r.t.Helper()
	b := r.batch(1)
	defer b.Close()
	r.submit(b, q)
	_ = b.Wait(r.t.Context())
	return b.Report().Requests[0]
}

func TestCheapestPathBySize(t *testing.T) {
	r := newRig(t)
	r.install(priced("quick", time.Microsecond, time.Millisecond))
	r.install(priced("wide", 100*time.Microsecond, 100*time.Microsecond))
	to := r.open("peer", []string{"quick", "wide"})
	local := r.memory(1 << 20)
	for size, want := range map[uint64]string{64: "quick", 1 << 16: "quick", 1 << 18: "wide", 1 << 20: "wide"} {
		q := r.pathOf(xfer.Request{Local: local.At(0), Len: size, Target: to, Remote: base})
		same(t, fmt.Sprint("path for ", size), q.Path, want)
		if len(q.Rejected) != 1 || q.Rejected[0].Path == want || q.Rejected[0].Reasons[0].Code != "cost" {
			t.Errorf("rejected for %d: %+v", size, q.Rejected)
		}
	}
	same(t, "reason", r.pathOf(xfer.Request{Local: local.At(0), Len: 1 << 20, Target: to, Remote: base}).Reason, "predicted 200µs, next best quick 1.001ms")
	same(t, "the other's cost", r.pathOf(xfer.Request{Local: local.At(0), Len: 1 << 20, Target: to, Remote: base}).Rejected[0].Reasons,
		[]transport.Reason{{Code: "cost", Want: "at most 200µs", Have: "1.001ms"}})
}

func TestPinsInsistOnAPath(t *testing.T) {
	r := newRig(t)
	r.install(priced("cheap", 1, 1))
	r.install(priced("dear", time.Second, time.Second))
	to := r.open("peer", []string{"cheap", "dear", "rdma"})
	local := r.memory(64)
	ask := func(pin xfer.Pin) RequestReport {
		t.Helper()
		return r.pathOf(xfer.Request{Pin: pin, Local: local.At(0), Len: 64, Target: to, Remote: base})
	}
	same(t, "without pin", ask(xfer.NoPin).Path, "cheap")
	dear := ask(r.Pin("dear"))
	same(t, "pinned", []string{dear.Path, dear.Reason}, []string{"dear", "the request insists on it"})
	if again, other := r.Pin("dear"), r.Pin("cheap"); r.Pin("dear") != again || other == again || again == xfer.NoPin || other == xfer.NoPin {
		t.Errorf("pins do not name transports: %d, then %d; %d for another", again, r.Pin("dear"), other)
	}
	for _, c := range []struct{ name, why string }{
		{"rdma", "rdma (installed: want rdma, have librdma.so not found)"},
		{"warp", "rdma (installed: want rdma, have librdma.so not found, pin: want warp, have rdma); " +
			"warp (installed: want warp, have libwarp.so not found, protocol: want warp, have peer offers cheap, dear, rdma)"},
	} {
		name := c.name
		q := ask(r.Pin(name))
		if q.State != "failed" || q.Path != "" {
			t.Errorf("%s: %+v", name, q)
		}
		d, err := r.Explain(to, xfer.Read, 64, r.Pin(name))
		if err != nil || d.Chosen != -1 || d.Pin != name {
			t.Errorf("%s: explained as %+v, %v", name, d, err)
		}
		b := r.batch(1)
		err = b.SubmitAll(t.Context(), []xfer.Request{{Pin: r.Pin(name), Local: local.At(0), Len: 64, Target: to, Remote: base}})
		wants(t, name, err, xfer.NotSupportedTransport)
		r.submit(b, xfer.Request{Pin: r.Pin(name), Local: local.At(0), Len: 64, Target: to, Remote: base})
		f := r.fault(b, 0)
		same(t, "reasons", f.Detail, "cheap (pin: want "+name+", have cheap); dear (pin: want "+name+", have dear); "+c.why)
	}
	for _, pin := range []xfer.Pin{r.Pin("warp") + 1, 999, 1<<16 - 1} {
		if never := ask(pin); never.State != "failed" {
			t.Errorf("pin %d, which was never handed out: %+v", pin, never)
		}
	}
	d, err := r.Explain(to, xfer.Read, 64, 999)
	if err != nil || d.Pin != "" || d.Rows[0].Rejected[0].Want != "a transport that is not known here" {
		t.Errorf("a pin that was never handed out is explained as %+v, %v", d, err)
	}
}

// Peers choose the names in their descriptions; those must not fill the table of pins.
func TestPeersDoNotFillThePins(t *testing.T) {
	r := newRig(t)
	local := r.memory(64)
	for i := range 50 {
		to := r.open(fmt.Sprint("peer", i), []string{fmt.Sprint("strange", i)})
		same(t, "state", r.pathOf(xfer.Request{Local: local.At(0), Len: 1, Target: to, Remote: base}).State, "failed")
	}
	same(t, "first pin", r.Pin("path"), xfer.Pin(1))
}

func TestPlansFollowTheInstallation(t *testing.T) {
	r := newRig(t)
	to := r.open("peer", []string{"path"})
	local := r.memory(64)
	path := func() string {
		return r.pathOf(xfer.Request{Local: local.At(0), Len: 64, Target: to, Remote: base}).Path
	}
	same(t, "without transports", path(), "")
	r.install(priced("dear", time.Second, time.Second))
	same(t, "with one", path(), "dear")
	cost := transport.Cost{Setup: 1}
	r.install(fake.Options{Name: "cheap", Offers: func(*segment.Desc) []transport.Offer { return []transport.Offer{fake.Usable(cost)} }})
	same(t, "with two", path(), "cheap")
	cost.Setup = time.Hour
	same(t, "before Changed", path(), "cheap")
	r.Changed()
	same(t, "after Changed", path(), "dear")
	cost.Setup = 1
	r.Changed()
	if _, err := r.Uninstall(t.Context(), "cheap"); err != nil {
		t.Fatal(err)
	}
	same(t, "after Uninstall", path(), "dear")
	d, err := r.Explain(to, xfer.Read, 64, xfer.NoPin)
	if err != nil || len(d.Rows) != 3 { // dear, path as the peer offers it, cheap as it was once installed
		t.Errorf("explained as %+v, %v", d, err)
	}
}

func TestReadyButNotInstalled(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Absent = func(string) transport.Availability { return transport.Availability{State: transport.Ready} }
	})
	d, err := r.Explain(r.open("peer", []string{"path"}), xfer.Read, 1, xfer.NoPin)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "reasons", d.Rows[0].Rejected, []transport.Reason{{Code: "installed", Want: "path", Have: "not installed",
		Side: xfer.SideHere, Next: "install it here: InstallTransport, or name it in Options.Transports"}})
}

func TestExplainRefusesWhatSubmitRefuses(t *testing.T) {
	r := newRig(t)
	_, err := r.Explain(77, xfer.Read, 1, xfer.NoPin)
	wants(t, "unknown segment", err, xfer.InvalidArgument)
	_, err = r.Explain(xfer.LocalSegment, 2, 1, xfer.NoPin)
	wants(t, "unknown operation", err, xfer.InvalidArgument)
}

// Whatever is offered, at whatever price: what Explain says is what a request does, and the rejected rows are the
// same.
func TestExplainIsWhatTheHotPathDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(&cleaner{TB: t, rt: rt})
		defer r.t.(*cleaner).run()
		names := []string{"a", "b", "c", "d"}
		for _, name := range names[:rapid.IntRange(0, 4).Draw(rt, "transports")] {
			rows := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) transport.Offer {
				o := fake.Usable(transport.Cost{
					Setup:  time.Duration(rapid.IntRange(0, 3).Draw(rt, "setup")) * time.Microsecond,
					PerMiB: time.Duration(rapid.IntRange(0, 3).Draw(rt, "per MiB")) * time.Millisecond,
				})
				o.Rail = rapid.SampledFrom([]string{"", "r0", "r1"}).Draw(rt, "rail")
				o.Ops = transport.OpSet(rapid.IntRange(0, 3).Draw(rt, "operations"))
				if rapid.Bool().Draw(rt, "refused") {
					o.Refused = []transport.Reason{{Code: "no"}}
				}
				return o
			}), 0, 3).Draw(rt, "rows")
			r.install(fake.Options{Name: name, Offers: fake.Rows(rows...)})
		}
		to := r.open("peer", []string{"a", "z"})
		local := r.memory(1 << 20)
		for range 5 {
			q := xfer.Request{
				Op:     xfer.Op(rapid.IntRange(0, 1).Draw(rt, "op")),
				Local:  local.At(0),
				Len:    rapid.SampledFrom([]uint64{0, 1, 100, 4096, 1 << 17, 1 << 20}).Draw(rt, "size"),
				Target: to,
				Remote: base,
			}
			if rapid.Bool().Draw(rt, "pinned") {
				q.Pin = r.Pin(rapid.SampledFrom(append(names, "z")).Draw(rt, "pin"))
			}
			d, err := r.Explain(to, q.Op, q.Len, q.Pin)
			if err != nil {
				rt.Fatal(err)
			}
			got := r.pathOf(q)
			if d.Chosen < 0 {
				if got.State != "failed" || got.Path != "" || len(got.Rejected) != len(d.Rows) {
					rt.Fatalf("explained as %+v, reported as %+v", d, got)
				}
				continue
			}
			chosen := d.Rows[d.Chosen]
			if got.State != "completed" || got.Path != chosen.Path || got.Rail != chosen.Rail {
				rt.Fatalf("explained as %+v, reported as %+v", d, got)
			}
			var rejected []string
			for i, row := range d.Rows {
				if i != d.Chosen {
					rejected = append(rejected, row.Path+row.Rail)
				}
			}
			var reported []string
			for _, j := range got.Rejected {
				reported = append(reported, j.Path+j.Rail)
			}
			if !slices.Equal(rejected, reported) {
				rt.Fatalf("rejected %v, reported %v", rejected, reported)
			}
		}
	})
}

// cleaner runs clean-ups at the end of a property's round instead of the test's.
type cleaner struct {
	testing.TB
	rt  *rapid.T
	all []func()
}

func (c *cleaner) Cleanup(f func())                  { c.all = append(c.all, f) }
func (c *cleaner) Fatal(args ...any)                 { c.rt.Fatal(args...) }
func (c *cleaner) Fatalf(format string, args ...any) { c.rt.Fatalf(format, args...) }
func (c *cleaner) Errorf(format string, args ...any) { c.rt.Errorf(format, args...) }

func (c *cleaner) run() {
	for _, f := range slices.Backward(c.all) {
		f()
	}
}
