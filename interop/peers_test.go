package interop

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/interop/cxx"
	"github.com/moonpath-io/moonpath/interop/pattern"
	"github.com/moonpath-io/moonpath/transport/fault"
	"github.com/moonpath-io/moonpath/xfer"
)

// startWithPid starts a C++ engine and finds its process among the children of this one.
func startWithPid(t *testing.T, env ...string) (*cxx.Peer, int) {
	t.Helper()
	before := children(t)
	p := cxx.Start(t, env...)
	for _, pid := range children(t) {
		if !slices.Contains(before, pid) {
			return p, pid
		}
	}
	t.Fatal("the process of the C++ engine is not among the children of this one")
	return nil, 0
}

func children(t *testing.T) (pids []int) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended
		}
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// stop freezes a process with all its threads.
func stop(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED, nil); err != nil {
		t.Fatal(err)
	}
}

// writes is count writes of one block each, to where blocks follow each other.
func writes(local *moonpath.Memory, id moonpath.SegmentID, remote, count, block uint64) []moonpath.Request {
	rs := make([]moonpath.Request, count)
	for i := range rs {
		off := uint64(i) * block
		rs[i] = moonpath.Request{Op: moonpath.OpWrite, Local: local.At(off), Len: block, Target: id, Remote: remote + off}
	}
	return rs
}

// TestR_TCP_1_AStoppedCxxTargetCompletesNothing: its kernel takes the bytes, and none of the writes may complete before
// the process has gone on. Version 1 has no answer to a write, so that only what is read back can complete it.
func TestR_TCP_1_AStoppedCxxTargetCompletesNothing(t *testing.T) {
	needCxx(t)
	const block, count = 4096, 64
	for _, protocol := range []string{"2", "1"} {
		t.Run("version "+protocol, func(t *testing.T) {
			p, pid := startWithPid(t)
			remote := allocCxx(t, p, block*count)
			e := openEngine(t, map[string]string{"tcp.protocol": protocol})
			local, id := alloc(t, e, block*count), openSegment(t, e, p.Name)
			copy(local.Bytes(), pattern.Bytes(5, block*count))
			rs := writes(local, id, remote, count, block)
			if _, err := run(t, e, rs[:1]); err != nil {
				t.Fatal(err)
			}
			stop(t, pid)
			b := newBatch(t, e, count)
			if _, err := b.Submit(t.Context(), rs); err != nil {
				t.Fatal(err)
			}
			<-time.After(300 * time.Millisecond) // nothing tells that nothing happens
			for i := range count {
				if s, err := b.Status(i); err != nil || s.State != xfer.Waiting || s.Bytes != 0 {
					t.Errorf("request %d of a target that is stopped: %+v, %v", i, s, err)
					break
				}
			}
			if err := unix.Kill(pid, unix.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if err := b.Wait(bounded(t)); err != nil {
				t.Fatal(err)
			}
			wantCxx(t, p, "completed writes", remote, local.Bytes())
		})
	}
}

// TestR_LIV_1_AFrozenCxxTargetEndsRequestsInTime has default settings. What the target executes when it goes on was sent
// before: the bytes of then, and the status says that they may come.
func TestR_LIV_1_AFrozenCxxTargetEndsRequestsInTime(t *testing.T) {
	const block, count, limit = 64 * kib, 1000, 5 * time.Second
	p, pid := startWithPid(t)
	remote := allocCxx(t, p, block*count)
	e := openEngine(t, nil)
	local, id := alloc(t, e, block*count), openSegment(t, e, p.Name)
	rs := writes(local, id, remote, count, block)
	if _, err := run(t, e, rs); err != nil {
		t.Fatal(err)
	}
	copy(local.Bytes(), slices.Repeat([]byte{0x11}, block*count))
	stop(t, pid)
	start := time.Now()
	b, err := run(t, e, rs)
	took := time.Since(start)
	wantFault(t, "requests to a frozen target", err, xfer.Deadline)
	if took > limit {
		t.Errorf("%d requests to a frozen target took %v, want at most %v", count, took, limit)
	}
	unknown := 0
	for i := range b.Len() {
		if s, _ := b.Status(i); s.Remote == xfer.Unknown {
			unknown++
		}
	}
	t.Logf("%v, with %d of %d writes unknown: %v", took, unknown, count, err)
	if unknown == 0 {
		t.Error("the target holds what was sent, and no status says so")
	}
	copy(local.Bytes(), slices.Repeat([]byte{0xff}, block*count))
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the target serves again", func() bool { return e.Read(t.Context(), id, local.At(0), remote, 1) == nil })
	// Connections that were ended are read to their end before this one: the target serves them with few threads.
	for off := uint64(0); off < block*count; off += block {
		got, err := p.ReadMem(remote+off, block)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(got, 0xff) {
			t.Fatal("what was put into memory after its requests had ended was sent")
		}
	}
}

// TestR_LIV_1_AKilledCxxTargetEndsRequestsAtOnce has default settings.
func TestR_LIV_1_AKilledCxxTargetEndsRequestsAtOnce(t *testing.T) {
	const block, count, limit = 64 * kib, 1000, 2 * time.Second
	p := cxx.Start(t)
	remote := allocCxx(t, p, block*count)
	e := openEngine(t, nil)
	local, id := alloc(t, e, block*count), openSegment(t, e, p.Name)
	rs := writes(local, id, remote, count, block)
	ended := inALoop(t, e, rs)
	start := time.Now()
	p.Kill()
	wantFault(t, "requests under way", <-ended, xfer.Socket)
	within(t, "a batch to the killed target", limit, func() {
		wantFault(t, "a batch to the killed target", transferOnce(t, e, rs), xfer.Socket)
	})
	if took := time.Since(start); took > limit {
		t.Errorf("requests to a killed target ended after %v, want at most %v", took, limit)
	}
}

// sameAddresses keeps the children of this thread, which ends with the test, from having random addresses.
func sameAddresses(t *testing.T) {
	t.Helper()
	const noRandomAddresses = 0x40000 // ADDR_NO_RANDOMIZE
	runtime.LockOSThread()
	if _, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, noRandomAddresses, 0, 0); errno != 0 {
		t.Skipf("addresses cannot be kept from being random: %v", errno)
	}
}

// TestACxxTargetThatIsRestartedWithTheSameNamePortsAndAddresses: requests of its first life end when that does, and none
// reaches the second. The engine's own choice of ports is random, and a killed one's are not free for a minute, so they
// are those of a front.
func TestACxxTargetThatIsRestartedWithTheSameNamePortsAndAddresses(t *testing.T) {
	needCxx(t)
	const block, count, lives = 4 * kib, 64, 40
	sameAddresses(t)
	first := cxx.Start(t)
	addr := allocCxx(t, first, block*count)
	relay := startRelay(t, first.Name)
	plan, err := fault.NewPlan(1)
	if err != nil {
		t.Fatal(err)
	}
	front, err := fault.OpenFront(t.Context(), relay.name, plan, fault.FrontOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = front.Close() })
	e := openEngine(t, nil)
	local, id := alloc(t, e, block*count), openSegment(t, e, front.Name())
	copy(local.Bytes(), pattern.Bytes(6, block*count))
	rs := writes(local, id, addr, count, block)
	ended := inALoop(t, e, rs)
	first.Kill()
	wantFault(t, "requests to the first life", <-ended, xfer.Socket, xfer.WrongPeer)

	var second *cxx.Peer
	for range lives {
		second = cxx.Start(t)
		if allocCxx(t, second, block*count) == addr {
			break
		}
		second.Kill()
		second = nil
	}
	if second == nil {
		t.Skipf("none of %d C++ engines has the addresses of the first", lives)
	}
	relay.target.Store(&second.Name)
	if err := e.SyncSegmentCache(front.Name()); err != nil {
		t.Fatal(err)
	}
	wantCxx(t, second, "the memory of the second life", addr, make([]byte, block*count))
	// What is asked for now is meant for whoever is there.
	if err := transferOnce(t, e, rs); err != nil {
		t.Fatalf("to the second life: %v", err)
	}
	wantCxx(t, second, "writes to the second life", addr, local.Bytes())
}

// inALoop makes the batch again and again until it fails. It returns when some rounds are done.
func inALoop(t *testing.T, e *moonpath.Engine, rs []moonpath.Request) <-chan error {
	t.Helper()
	ended, began := make(chan error, 1), make(chan struct{})
	go func() {
		for round := 0; ; round++ {
			if round == 3 {
				close(began)
			}
			if err := transferOnce(t, e, rs); err != nil {
				ended <- err
				return
			}
		}
	}()
	select {
	case <-began:
	case err := <-ended:
		t.Fatal(err)
	}
	return ended
}
