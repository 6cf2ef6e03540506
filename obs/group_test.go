package obs

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSnapshotListsEverythingSorted(t *testing.T) {
	root := NewGroup()
	root.Gauge("segments").Set(2)
	tcp := root.Group("tcp")
	peer := tcp.Group("127.0.0.1:15001")
	peer.Group("lane1").Counter("bytes").Add(20)
	peer.Group("lane0").Counter("requests").Add(1)
	peer.Group("lane0").Counter("bytes").Add(10)
	peer.Histogram("latency_ns").Record(40)
	peer.Func("queued", func() int64 { return -3 })
	tcp.Counter("accepted").Add(5)
	root.Group("local")

	want := []Sample{
		{"", "segments", 2},
		{"tcp", "accepted", 5},
		{"tcp/127.0.0.1:15001", "latency_ns.count", 1},
		{"tcp/127.0.0.1:15001", "latency_ns.max", 40},
		{"tcp/127.0.0.1:15001", "latency_ns.mean", 40},
		{"tcp/127.0.0.1:15001", "latency_ns.p50", 40},
		{"tcp/127.0.0.1:15001", "latency_ns.p99", 40},
		{"tcp/127.0.0.1:15001", "latency_ns.p999", 40},
		{"tcp/127.0.0.1:15001", "queued", -3},
		{"tcp/127.0.0.1:15001/lane0", "bytes", 10},
		{"tcp/127.0.0.1:15001/lane0", "requests", 1},
		{"tcp/127.0.0.1:15001/lane1", "bytes", 20},
	}
	for range 3 { // map order must not show
		if diff := cmp.Diff(want, root.Snapshot()); diff != "" {
			t.Fatal(diff)
		}
	}
	if diff := cmp.Diff(want[1:], tcp.Snapshot()); diff != "" {
		t.Error(diff)
	}
}

func TestNamesReturnTheSameValue(t *testing.T) {
	g := NewGroup()
	group, counter, gauge, histogram := g.Group("a"), g.Counter("c"), g.Gauge("g"), g.Histogram("h")
	if g.Group("a") != group || g.Counter("c") != counter || g.Gauge("g") != gauge || g.Histogram("h") != histogram {
		t.Error("a name gave two values")
	}
	g.Func("f", func() int64 { return 1 })
	g.Func("f", func() int64 { return 2 })
	for _, s := range g.Snapshot() {
		if s.Name == "f" && s.Value != 1 {
			t.Errorf("f is %d, want the first function's 1", s.Value)
		}
	}
}

func TestRemovedGroupLeavesTheSnapshot(t *testing.T) {
	root := NewGroup()
	old := root.Group("peer").Counter("bytes")
	root.Remove("peer")
	root.Remove("nobody")
	old.Add(1)
	if got := root.Snapshot(); len(got) != 0 {
		t.Errorf("snapshot still has %v", got)
	}
	if fresh := root.Group("peer").Counter("bytes"); fresh == old || fresh.Load() != 0 {
		t.Error("a peer that comes back must start at zero")
	}
}

func TestNameOfTwoTypesPanics(t *testing.T) {
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "tcp") || !strings.Contains(text, "bytes") {
			t.Errorf("panicked with %q, want group and name in it", text)
		}
	}()
	g := NewGroup().Group("tcp")
	g.Counter("bytes")
	g.Gauge("bytes")
}

func TestGroupIsSafeForConcurrentUse(t *testing.T) {
	root := NewGroup()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 100 {
				name := fmt.Sprint(i % 10)
				root.Group(name).Counter("n").Add(1)
				root.Snapshot()
				if i%25 == 0 {
					root.Remove("9")
				}
			}
		})
	}
	wg.Wait()
	for _, s := range root.Snapshot() {
		if s.Path != "9" && s.Value != 40 {
			t.Errorf("%s/%s is %d, want 40", s.Path, s.Name, s.Value)
		}
	}
}
