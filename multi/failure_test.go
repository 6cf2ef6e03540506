package multi

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/xfer"
)

func TestOneFailingRequestSparesTheOthers(t *testing.T) {
	const n, size = 60, 100
	r := newRig(t)
	// Requests 7, 8 and 30 fail; each is cut into four, and only their third chunk fails.
	path := r.install(fake.Options{Name: "path", Piece: 25, Script: func(c *transport.Chunk) fake.Answer {
		switch c.Remote - base {
		case 7*size + 50:
			return fake.Fail(xfer.Refused, xfer.Confirmed)
		case 8*size + 50:
			return fake.Fail(xfer.Socket, xfer.Unknown)
		case 30*size + 50:
			return fake.Fail(xfer.WrongPeer, xfer.Confirmed)
		}
		return fake.Done
	}})
	to := r.open("peer", []string{"path"})
	local := r.memory(n * size)
	b := r.batch(n)
	r.submit(b, writes(to, local, n, size)...)
	err := b.Wait(t.Context())
	wants(t, "Wait", err, xfer.Refused)
	for i := range n {
		s := r.status(b, i)
		want := xfer.Status{State: xfer.Completed, Bytes: size}
		switch i {
		case 7, 8, 30:
			want = xfer.Status{State: xfer.Failed, Bytes: 75, Err: s.Err}
			if i == 8 {
				want.Remote = xfer.Unknown
			}
		}
		if s != want {
			t.Errorf("task %d: %+v, want %+v", i, s, want)
		}
	}
	wants(t, "task 7", r.status(b, 7).Err, xfer.Refused)
	wants(t, "task 8", r.status(b, 8).Err, xfer.Socket)
	wants(t, "task 30", r.status(b, 30).Err, xfer.WrongPeer)
	same(t, "overall", b.Overall(), xfer.Status{State: xfer.Failed, Remote: xfer.Unknown, Bytes: n*size - 3*25, Err: err})
	p := b.Report().Paths
	if len(p) != 1 || p[0].Requests != n || p[0].Failed != 3 || p[0].Bytes != (n-3)*size || p[0].Slices != 4*n {
		t.Errorf("report %+v", p)
	}
	same(t, "leases", local.InUse(), int64(0))
	dialled, _ := path.Routes()
	same(t, "routes", dialled, 1)
	// The path goes on, and nothing clings to the tasks.
	r.submit(b.again(t), writes(to, local, n, size)[31:]...)
	if err := b.Wait(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	for i, q := range b.Report().Requests {
		if s := r.status(b, i); s != (xfer.Status{State: xfer.Completed, Bytes: size}) || q.Slices != 4 {
			t.Errorf("afterwards, task %d: %+v in %d slices", i, s, q.Slices)
		}
	}
}

// What a task has queued when one of its chunks fails is not sent any more.
func TestRestOfAFailedTaskIsNotTaken(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Piece: 10, Window: 2, Script: fake.Always(fake.Hold)})
	to := r.open("peer", []string{"path"})
	local := r.memory(4096)
	b := r.batch(2)
	r.submit(b, writes(to, local, 2, 100)...)
	r.held(path, 2)
	same(t, "failed", path.Answer(func(c *transport.Chunk) bool { return c.Remote == base }, fake.Fail(xfer.Refused, xfer.Confirmed)), 1)
	// One more chunk of the first task is out; the window is filled by the second task.
	same(t, "state", r.status(b, 0).State, xfer.Waiting)
	path.StepAll()
	same(t, "states", states(b), []xfer.State{xfer.Failed, xfer.Completed})
	same(t, "bytes", []uint64{r.status(b, 0).Bytes, r.status(b, 1).Bytes}, []uint64{10, 100})
	same(t, "chunks", len(path.Taken()), 12)
	same(t, "slices", b.Report().Requests[0].Slices, 2)
}

func TestCertaintyOfATask(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []fake.Answer // of the task's chunks
		want    xfer.Status
	}{
		{"all done", []fake.Answer{fake.Done, fake.Done}, xfer.Status{State: xfer.Completed, Bytes: 20}},
		{"one unconfirmed", []fake.Answer{fake.Done, {Remote: xfer.Unconfirmed}}, xfer.Status{State: xfer.Completed, Remote: xfer.Unconfirmed, Bytes: 20}},
		{"failed, nothing more happens", []fake.Answer{fake.Fail(xfer.Refused, xfer.Confirmed), fake.Done}, xfer.Status{State: xfer.Failed, Bytes: 10}},
		{"failed, unknown", []fake.Answer{fake.Fail(xfer.Socket, xfer.Unknown), fake.Done}, xfer.Status{State: xfer.Failed, Remote: xfer.Unknown, Bytes: 10}},
		{"failed, the other unconfirmed", []fake.Answer{{Remote: xfer.Unconfirmed}, fake.Fail(xfer.Refused, xfer.Confirmed)}, xfer.Status{State: xfer.Failed, Remote: xfer.Unknown, Bytes: 10}},
		{"the first fault is kept, the least certainty counts", []fake.Answer{fake.Fail(xfer.Refused, xfer.Confirmed), fake.Fail(xfer.Socket, xfer.Unknown)},
			xfer.Status{State: xfer.Failed, Remote: xfer.Unknown}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.install(fake.Options{Name: "path", Piece: 10, Script: func(c2 *transport.Chunk) fake.Answer { return c.answers[(c2.Remote-base)/10] }})
			to := r.open("peer", []string{"path"})
			b := r.batch(1)
			r.submit(b, writes(to, r.memory(20), 1, 20)...)
			err := b.Wait(t.Context())
			c.want.Err = err
			same(t, "status", r.status(b, 0) == c.want, true)
			if err == nil {
				return
			}
			f := r.fault(b, 0)
			first := c.answers[0].Fault
			if first == nil {
				first = c.answers[1].Fault
			}
			if f.Code != first.Code || f.Remote != c.want.Remote || strings.Contains(f.Error(), "remote state unknown") != (c.want.Remote == xfer.Unknown) {
				t.Errorf("fault %v with certainty %v", f, f.Remote)
			}
		})
	}
}

// A fault of the transport may be shared by tasks, so what differs between them must not be written into it.
func TestSharedFaultsAreNotChanged(t *testing.T) {
	r := newRig(t)
	refused := fake.Fail(xfer.Refused, xfer.Confirmed)
	r.install(fake.Options{Name: "path", Piece: 10, Script: func(c *transport.Chunk) fake.Answer {
		if c.Remote == base+10 {
			return fake.Fail(xfer.Socket, xfer.Unknown)
		}
		return refused
	}})
	to := r.open("peer", []string{"path"})
	b := r.batch(2)
	r.submit(b, writes(to, r.memory(40), 2, 20)...)
	wants(t, "Wait", b.Wait(t.Context()), xfer.Refused)
	same(t, "certainties of the faults", []xfer.Certainty{r.fault(b, 0).Remote, r.fault(b, 1).Remote}, []xfer.Certainty{xfer.Unknown, xfer.Confirmed})
	same(t, "certainty of the transport's fault", refused.Fault.Remote, xfer.Confirmed)
}

func TestLateAndDoubleDoneIsIgnored(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
	to := r.open("peer", []string{"path"})
	local := r.memory(4096)
	b := r.batch(4)
	r.submit(b, writes(to, local, 2, 16)...)
	r.held(path, 2)
	path.Step(1)
	same(t, "repeated", path.Repeat(), 1)
	same(t, "states", states(b), []xfer.State{xfer.Completed, xfer.Waiting})
	path.Step(1)
	path.Repeat()
	// Slots are in use again: what speaks of their earlier chunks must not end the new ones.
	r.submit(b, writes(to, local, 2, 16)...)
	r.held(path, 2)
	same(t, "repeated", path.Repeat(), 2)
	same(t, "states", states(b), []xfer.State{xfer.Completed, xfer.Completed, xfer.Waiting, xfer.Waiting})
	same(t, "leases", local.InUse(), int64(2))
	if err := b.Reset(); !errors.Is(err, xfer.BatchBusy) {
		t.Errorf("Reset: %v", err)
	}
	path.StepAll()
	same(t, "states", states(b), repeated(xfer.Completed, 4))
	if err := b.Reset(); err != nil {
		t.Fatal(err)
	}
	path.Repeat()
	same(t, "leases", local.InUse(), int64(0))
}

func TestDoneOfAChunkThatNeverWas(t *testing.T) {
	r := newRig(t)
	path := r.install(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
	to := r.open("peer", []string{"path"})
	b := r.batch(1)
	r.submit(b, writes(to, r.memory(16), 1, 16)...)
	r.held(path, 1)
	route := r.peers[to].routes[path]
	route.Done([]transport.Completion{{Ref: transport.Ref{Slot: 99}}, {Ref: transport.Ref{Slot: 1}}, {Ref: transport.Ref{Gen: 5}}, {Ref: transport.Ref{Slot: ^uint32(0), Gen: ^uint32(0)}}})
	same(t, "state", r.status(b, 0).State, xfer.Waiting)
	route.Done([]transport.Completion{{Ref: transport.Ref{}}, {Ref: transport.Ref{}}})
	same(t, "status", r.status(b, 0), xfer.Status{State: xfer.Completed, Bytes: 16})
	route.Done([]transport.Completion{{Ref: transport.Ref{Gen: 1}}}) // of the slot's next use, which has not come
	path.Step(1)                                                     // the fake does not know; its answer is one too many
	same(t, "status", r.status(b, 0), xfer.Status{State: xfer.Completed, Bytes: 16})
}

func TestFailuresAreRecorded(t *testing.T) {
	r := newRig(t)
	r.install(fake.Options{Name: "path", Script: fake.Always(fake.Fail(xfer.Refused, xfer.Confirmed))})
	to := r.open("peer", []string{"path"})
	b := r.batch(1)
	r.submit(b, writes(to, r.memory(16), 1, 16)...)
	wants(t, "Wait", b.Wait(t.Context()), xfer.Refused)
	var kinds []string
	for _, e := range r.events.Events() {
		kinds = append(kinds, e.Kind+" "+e.Subject)
	}
	same(t, "events", kinds, []string{"decision peer", "route peer", "failure peer"})
	same(t, "counters", []uint64{r.count.tasks.Load(), r.count.failed.Load()}, []uint64{1, 1})
}

// What is remembered is what changed, and a flood of failures counts as one.
func TestTheRecorderHasWhatChanged(t *testing.T) {
	r := newRig(t)
	cheap := r.install(fake.Options{Name: "cheap", Offers: fake.Rows(fake.Usable(transport.Cost{Setup: 1}))})
	r.install(fake.Options{Name: "dear", Script: fake.Always(fake.Fail(xfer.Refused, xfer.Confirmed)), Offers: fake.Rows(fake.Usable(transport.Cost{Setup: 100}))})
	to := r.open("peer", []string{"cheap", "dear"})
	memory := r.memory(1600)
	b := r.batch(100)
	run := func() {
		r.submit(b, writes(to, memory, 100, 16)...)
		_ = b.Wait(t.Context()) // fails in the end, which is recorded
		if err := b.Reset(); err != nil {
			t.Fatal(err)
		}
	}
	run()
	r.Changed() // plans are made anew, and are the same
	run()
	if _, err := r.Uninstall(t.Context(), "cheap"); err != nil {
		t.Fatal(err)
	}
	run()
	if _, err := r.Uninstall(t.Context(), "dear"); err != nil {
		t.Fatal(err)
	}
	run()
	if err := r.Install(t.Context(), cheap); err != nil {
		t.Fatal(err)
	}
	run()
	replaced := &segment.Desc{Name: "peer", Protocols: []string{"cheap"}, TCP: segment.Endpoint{Host: "elsewhere"}, Buffers: []segment.Buffer{{Addr: base, Len: 1 << 20}}}
	r.dir.set(replaced)
	peer, err := r.cache.Get(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := peer.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	run()
	var got []string
	for _, e := range r.events.Events() {
		got = append(got, fmt.Sprintf("%s %s %d", e.Kind, e.Subject, e.Times))
	}
	same(t, "events", got, []string{
		"decision peer 1", "route peer 1", // over cheap
		"downgrade peer 1", "route peer 1", "failure peer 100", // over dear, which refuses
		"downgrade peer 1", "failure peer 100", // over nothing
		"decision peer 1", "route peer 1", // over cheap again
		"peer peer 1", "route peer 1", // the decision is the same
	})
}
