package interop

import (
	"bytes"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/interop/cxx"
	"github.com/moonpath-io/moonpath/interop/pattern"
)

// TestACxxInitiatorThatGoesAwayLeavesNothing kills and freezes a C++ engine in the middle of large writes to moonpath.
// The memory can be unregistered soon after, nothing is written to it then, and another C++ engine is served meanwhile.
func TestACxxInitiatorThatGoesAwayLeavesNothing(t *testing.T) {
	needCxx(t)
	const size, stall = 64 * mib, time.Second
	for name, c := range map[string]struct {
		befalls func(t *testing.T, p *cxx.Peer, pid int)
		limit   time.Duration
	}{
		"killed": {func(_ *testing.T, p *cxx.Peer, _ int) { p.Kill() }, 2 * time.Second},
		"frozen": {func(t *testing.T, _ *cxx.Peer, pid int) { stop(t, pid) }, stall + 4*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			victim, pid := startWithPid(t)
			other := cxx.Start(t)
			from, small := allocCxx(t, victim, size), allocCxx(t, other, 64*kib)
			fillCxx(t, victim, from, size, 3)
			fillCxx(t, other, small, 64*kib, 4)
			target := openEngine(t, map[string]string{"tcp.progress_timeout": stall.String()})
			memory, kept := alloc(t, target, size), alloc(t, target, 64*kib)
			ended := make(chan error, 1)
			go func() {
				for {
					if err := victim.Transfer(cxx.Write, target.Name(), from, uint64(memory.At(0)), size); err != nil {
						ended <- err
						return
					}
				}
			}()
			eventually(t, "two large writes have been served", func() bool { return counter(target, "tcp", "bytes_served") > 2*size })
			c.befalls(t, victim, pid)
			if err := other.Transfer(cxx.Write, target.Name(), small, uint64(kept.At(0)), 64*kib); err != nil {
				t.Errorf("another initiator: %v", err)
			}
			if !bytes.Equal(kept.Bytes(), pattern.Bytes(4, 64*kib)) {
				t.Error("another initiator: wrong bytes")
			}
			within(t, "unregistering memory that the victim was writing", c.limit, func() {
				if err := target.UnregisterLocalMemory(memory.At(0)); err != nil {
					t.Errorf("unregister: %v", err)
				}
			})
			clear(memory.Bytes())
			if name == "frozen" {
				if err := unix.Kill(pid, unix.SIGCONT); err != nil {
					t.Fatal(err)
				}
			}
			<-ended
			if at := bytes.IndexFunc(memory.Bytes(), func(r rune) bool { return r != 0 }); at >= 0 {
				t.Errorf("memory was written at %d after its registration had ended", at)
			}
		})
	}
}

// TestACxxInitiatorOfMemoryThatIsGone asks moonpath for memory that is registered and cannot be touched any more. The
// request fails, and the engine serves other memory as before.
func TestACxxInitiatorOfMemoryThatIsGone(t *testing.T) {
	needCxx(t)
	const size = mib
	p := cxx.Start(t, "MC_TCP_ENABLE_CONNECTION_POOL=0") // whose fourth broken connection takes the next request with it
	local := allocCxx(t, p, size)
	target := openEngine(t, nil)
	good := alloc(t, target, size)
	gone, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(gone) })
	lost, err := target.Register(gone, moonpath.RegisterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range []cxx.Op{cxx.Write, cxx.Read} {
		for _, n := range []uint64{512, size} {
			if err := unix.Mprotect(gone, unix.PROT_READ|unix.PROT_WRITE); err != nil {
				t.Fatal(err)
			}
			if err := p.Transfer(op, target.Name(), local, uint64(lost.At(0)), n); err != nil {
				t.Errorf("%s of %d bytes before: %v", op, n, err)
			}
			if err := unix.Mprotect(gone, unix.PROT_NONE); err != nil {
				t.Fatal(err)
			}
			within(t, "a request for memory that is gone", soon, func() {
				wantCode(t, "a request for memory that is gone", p.Transfer(op, target.Name(), local, uint64(lost.At(0)), n), -1)
			})
			if err := p.Transfer(op, target.Name(), local, uint64(good.At(0)), n); err != nil {
				t.Errorf("%s of %d bytes of other memory: %v", op, n, err)
			}
		}
	}
}
