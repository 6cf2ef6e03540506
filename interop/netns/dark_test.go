package netns

import (
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/internal/netlab"
	"github.com/moonpath-io/moonpath/interop/pattern"
	"github.com/moonpath-io/moonpath/xfer"
)

const (
	// blackholeLimit is the five seconds that default settings promise, and what a busy machine takes to notice.
	blackholeLimit = 5*time.Second + 500*time.Millisecond
	poison         = 0xee
)

// The requests are submitted after the path has gone dark, over connections that worked.
func TestR_LIV_1_RequestsEndWhenThePathIsDark(t *testing.T) {
	for _, op := range []moonpath.Op{moonpath.OpRead, moonpath.OpWrite} {
		t.Run(op.String(), func(t *testing.T) {
			r := newRig(t, netlab.Path{Delay: time.Millisecond})
			r.move(t, op, 8)
			r.dark(t)
			begin := time.Now()
			r.submit(t, r.requests(op, 8))
			r.wantEnd(t, begin)
			r.wantRecovery(t, op, 8)
		})
	}
}

// The path goes dark when a part has arrived.
func TestR_LIV_1_RequestsEndWhenThePathGoesDarkMeanwhile(t *testing.T) {
	for _, op := range []moonpath.Op{moonpath.OpRead, moonpath.OpWrite} {
		t.Run(op.String(), func(t *testing.T) {
			const n = targetBytes / mib
			r := newRig(t, netlab.Path{Delay: time.Millisecond, Rate: 150e6}) // all of it takes 1.8 s
			r.move(t, op, 4)
			r.submit(t, r.requests(op, n))
			r.untilCompleted(t, 4)
			r.dark(t)
			begin := time.Now()
			r.wantEnd(t, begin)
			completed := r.count(xfer.Completed)
			if completed == 0 || completed == n {
				t.Fatalf("%d of %d requests completed, so the path did not go dark in the middle", completed, n)
			}
			r.wantRecovery(t, op, n)
		})
	}
}

// No connection is there yet when the path is dark.
func TestR_LIV_1_FirstRequestEndsWhenThePathIsDark(t *testing.T) {
	r := newRig(t, netlab.Path{Delay: time.Millisecond})
	r.dark(t)
	begin := time.Now()
	r.submit(t, r.requests(moonpath.OpWrite, 4))
	r.wantEnd(t, begin)
	r.wantRecovery(t, moonpath.OpWrite, 4)
}

func TestOpeningASegmentEndsWhenThePathIsDark(t *testing.T) {
	r := newRig(t, netlab.Path{Delay: time.Millisecond})
	if err := r.engine.CloseSegment(r.id); err != nil {
		t.Fatal(err)
	}
	r.dark(t)
	begin := time.Now()
	if _, err := r.engine.OpenSegment(r.far.Name); err == nil {
		t.Error("a segment could be opened over a dark path")
	}
	if took := time.Since(begin); took > blackholeLimit {
		t.Errorf("it took %v to fail, want %v at most", took, blackholeLimit)
	}
	r.light(t)
	id, err := r.engine.OpenSegment(r.far.Name)
	if err != nil {
		t.Fatalf("the path has returned: %v", err)
	}
	r.id = id
	r.move(t, moonpath.OpRead, 4)
}

func (r *rig) dark(t *testing.T) {
	t.Helper()
	if err := r.lab.Set(netlab.Path{Delay: time.Millisecond, Dark: true}); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) light(t *testing.T) {
	t.Helper()
	if err := r.lab.Set(netlab.Path{Delay: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) count(state xfer.State) int {
	n := 0
	for i := range r.batch.Len() {
		if s, _ := r.batch.Status(i); s.State == state {
			n++
		}
	}
	return n
}

func (r *rig) untilCompleted(t *testing.T, n int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx := bounded(t); r.count(xfer.Completed) < n; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d requests have not completed", n)
		}
	}
}

// wantEnd wants the batch to fail in time, and takes the memory back.
func (r *rig) wantEnd(t *testing.T, begin time.Time) {
	t.Helper()
	err := r.batch.Wait(bounded(t))
	took := time.Since(begin)
	if err == nil {
		t.Error("a batch completed over a dark path")
	}
	if took > blackholeLimit {
		t.Errorf("requests ended %v after the path had gone dark, want %v at most", took, blackholeLimit)
	}
	t.Logf("ended after %v: %v", took.Round(time.Millisecond), err)
	for i := range r.memory.Bytes() {
		r.memory.Bytes()[i] = poison
	}
}

// wantRecovery lets the path return and wants the same engine to work again. The kernel still has what it could not send:
// none of it may reach memory that the requests have given back, and none of the memory's new content may have been sent.
func (r *rig) wantRecovery(t *testing.T, op moonpath.Op, n int) {
	t.Helper()
	r.light(t)
	begin := time.Now()
	const probed = 1 // MiB, at the end of the memory
	last := uint64(targetBytes - probed*mib)
	if err := r.engine.Read(bounded(t), r.id, r.memory.At(last), r.far.Addr+last, probed*mib); err != nil {
		t.Fatalf("the path has returned: %v", err)
	}
	t.Logf("worked again after %v", time.Since(begin).Round(time.Millisecond))
	for i, c := range r.memory.Bytes()[:last] {
		if c != poison {
			t.Fatalf("byte %d was written after the requests had ended", i)
		}
	}
	r.move(t, moonpath.OpRead, n)
	got, old, written := r.bytes(n), pattern.Bytes(targetSeed, targetBytes), pattern.Bytes(writtenSeed, targetBytes)
	for i := range got {
		if got[i] != old[i] && (op == moonpath.OpRead || got[i] != written[i]) {
			t.Fatalf("byte %d of the target is %#x, want %#x or %#x", i, got[i], old[i], written[i])
		}
	}
}
