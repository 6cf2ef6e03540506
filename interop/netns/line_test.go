package netns

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/internal/netlab"
	"github.com/moonpath-io/moonpath/interop/pattern"
)

// rig is an engine here, with default settings, and a target on the far host.
type rig struct {
	lab    *netlab.Lab
	engine *moonpath.Engine
	memory *moonpath.Memory
	far    served
	id     moonpath.SegmentID
	batch  *moonpath.Batch
}

func newRig(t *testing.T, path netlab.Path) *rig {
	t.Helper()
	lab := newLab(t, path)
	r := &rig{lab: lab, far: startTarget(t, lab)}
	var err error
	r.engine, err = moonpath.Open(t.Context(), moonpath.Options{Host: lab.Near.Address, Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.engine.Close(); err != nil {
			t.Errorf("close of the engine: %v", err)
		}
	})
	if r.memory, err = r.engine.Alloc(targetBytes, moonpath.AllocOptions{}); err != nil {
		t.Fatal(err)
	}
	copy(r.memory.Bytes(), pattern.Bytes(writtenSeed, targetBytes))
	if r.id, err = r.engine.OpenSegment(r.far.Name); err != nil {
		t.Fatal(err)
	}
	if r.batch, err = r.engine.NewBatch(moonpath.BatchOptions{Capacity: targetBytes / mib}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.batch.Close() })
	return r
}

// requests are n of 1 MiB each, at the same offsets on both sides.
func (r *rig) requests(op moonpath.Op, n int) []moonpath.Request {
	rs := make([]moonpath.Request, n)
	for i := range rs {
		off := uint64(i) * mib
		rs[i] = moonpath.Request{Op: op, Local: r.memory.At(off), Len: mib, Target: r.id, Remote: r.far.Addr + off}
	}
	return rs
}

func (r *rig) submit(t *testing.T, rs []moonpath.Request) {
	t.Helper()
	if err := r.batch.Reset(); err != nil {
		t.Fatal(err)
	}
	if n, err := r.batch.Submit(t.Context(), rs); err != nil || n != len(rs) {
		t.Fatalf("%d of %d requests were taken: %v", n, len(rs), err)
	}
}

// bounded is far more than anything here takes when it works.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func (r *rig) move(t *testing.T, op moonpath.Op, n int) {
	t.Helper()
	r.submit(t, r.requests(op, n))
	if err := r.batch.Wait(bounded(t)); err != nil {
		t.Fatalf("%v of %d MiB: %v", op, n, err)
	}
}

func (r *rig) bytes(n int) []byte { return r.memory.Bytes()[:n*mib] }

func TestBytesArriveOverDelayAndLoss(t *testing.T) {
	for _, test := range []struct {
		name string
		path netlab.Path
	}{
		{"1 ms", netlab.Path{Delay: time.Millisecond}},
		{"10 ms, 1 % lost", netlab.Path{Delay: 10 * time.Millisecond, Loss: 0.01}},
		{"1 ms, 0.1 % lost, 1 Gbit per second", netlab.Path{Delay: time.Millisecond, Loss: 0.001, Rate: 1e9}},
	} {
		t.Run(test.name, func(t *testing.T) {
			const n = 8
			r := newRig(t, test.path)
			r.move(t, moonpath.OpRead, n)
			if !bytes.Equal(r.bytes(n), pattern.Bytes(targetSeed, targetBytes)[:n*mib]) {
				t.Error("a read brought wrong bytes")
			}
			copy(r.memory.Bytes(), pattern.Bytes(writtenSeed, n*mib))
			r.move(t, moonpath.OpWrite, n)
			clear(r.bytes(n))
			r.move(t, moonpath.OpRead, n)
			if !bytes.Equal(r.bytes(n), pattern.Bytes(writtenSeed, n*mib)) {
				t.Error("what was written is not what can be read")
			}
			if test.path.Loss > 0 {
				if _, lost := r.lab.Carried(); lost == 0 {
					t.Error("the line lost nothing, so this proves nothing")
				}
			}
		})
	}
}

// Within a host the engine chooses a congestion control that does not pace; between hosts it leaves that to the system.
func TestCongestionControlIsTheSystemsBetweenHosts(t *testing.T) {
	r := newRig(t, netlab.Path{Delay: time.Millisecond})
	r.move(t, moonpath.OpRead, 8)
	system, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	wanted := strings.TrimSpace(string(system))
	if wanted == "reno" {
		t.Skip("the system's congestion control is reno, so the engine's choice cannot be told from it")
	}
	for name, h := range map[string]*netlab.Host{"near": r.lab.Near, "far": r.lab.Far} {
		out, err := h.Command(t.Context(), "ss", "-tinHO", "state", "established").Output()
		if err != nil {
			t.Fatalf("ss: %v", err)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if len(lines) < 2 {
			t.Errorf("%d connections on the %s host, want the lanes", len(lines), name)
		}
		for _, line := range lines {
			if !strings.Contains(" "+line+" ", " "+wanted+" ") {
				t.Errorf("the %s host does not use %s: %s", name, wanted, line)
			}
		}
	}
}
