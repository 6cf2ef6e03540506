package moonpath_test

import (
	"bytes"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

// mapping is registered memory that the test takes away while it is registered: callers do that.
type mapping struct {
	addr, size uint64
	file       *os.File
}

// nextMapping is where the next mapping goes: far from everything that the runtime or the kernel puts somewhere, so that
// nothing else comes to lie where one was.
var nextMapping atomic.Uint64

const firstMapping = 0x5b0000000000

func newMapping(t testing.TB, e *moonpath.Engine, size uint64) *mapping {
	t.Helper()
	fd, err := unix.MemfdCreate("memory", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	m := &mapping{addr: firstMapping + nextMapping.Add(1)<<32, size: size, file: os.NewFile(uintptr(fd), "memory")}
	t.Cleanup(func() { m.file.Close() })
	if err := m.file.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	if _, _, errno := unix.Syscall6(unix.SYS_MMAP, uintptr(m.addr), uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED_NOREPLACE, uintptr(fd), 0); errno != 0 {
		t.Fatal(errno)
	}
	t.Cleanup(func() { unix.Syscall(unix.SYS_MUNMAP, uintptr(m.addr), uintptr(size), 0) })
	if err := e.RegisterLocalMemory(moonpath.Addr(m.addr), size, "*", true); err != nil {
		t.Fatal(err)
	}
	return m
}

// losses are the ways in which a caller takes memory away.
var losses = map[string]func(testing.TB, *mapping){
	"unmapped": func(t testing.TB, m *mapping) {
		if _, _, errno := unix.Syscall(unix.SYS_MUNMAP, uintptr(m.addr), uintptr(m.size), 0); errno != 0 {
			t.Fatal(errno)
		}
	},
	"protected": func(t testing.TB, m *mapping) {
		if _, _, errno := unix.Syscall(unix.SYS_MPROTECT, uintptr(m.addr), uintptr(m.size), unix.PROT_NONE); errno != 0 {
			t.Fatal(errno)
		}
	},
	"shrunk": func(t testing.TB, m *mapping) {
		if err := m.file.Truncate(0); err != nil {
			t.Fatal(err)
		}
	},
}

// lossAt is a pair of engines in which one of them loses a part of its memory.
type lossAt struct {
	engine   *moonpath.Engine // the initiator
	requests []moonpath.Request
	bad      func(i int) bool
	lost     *mapping
	here     *moonpath.Memory // of the good requests
	there    *moonpath.Memory
	block    uint64
}

// newLoss makes requests of which every eighth needs the mapping, at the initiator or at the target.
func newLoss(t *testing.T, path string, op moonpath.Op, atTarget bool, block uint64) *lossAt {
	t.Helper()
	const count = 64
	target, e := openEngine(t, nil), openEngine(t, nil)
	l := &lossAt{engine: e, block: block, here: alloc(t, e, count*block), there: alloc(t, target, count*block), bad: func(i int) bool { return i%8 == 3 }}
	owner := e
	if atTarget {
		owner = target
	}
	l.lost = newMapping(t, owner, block)
	l.requests = rows(op, pinned(t, e, path), l.here, open(t, e, target), l.there, count, block)
	for i := range l.requests {
		switch r := &l.requests[i]; {
		case !l.bad(i):
		case atTarget:
			r.Remote = l.lost.addr
		default:
			r.Local = moonpath.Addr(l.lost.addr)
		}
	}
	return l
}

// verify wants the requests that need the lost memory to have failed, with a code that says so where this side knows,
// and the others to have completed, with their bytes.
func (l *lossAt) verify(t *testing.T, b *moonpath.Batch, code moonpath.Code) {
	t.Helper()
	for i, r := range l.requests {
		lo, hi := uint64(i)*l.block, uint64(i+1)*l.block
		s, err := b.Status(i)
		switch {
		case err != nil:
			t.Fatal(err)
		case l.bad(i):
			if s.State != xfer.Failed || s.Err == nil {
				t.Errorf("request %d needs memory that is gone, and ended as %+v", i, s)
			} else {
				requireFault(t, s.Err, code)
			}
		case s.State != xfer.Completed:
			t.Errorf("request %d is innocent, and ended as %+v", i, s)
		case !bytes.Equal(l.here.Bytes()[lo:hi], l.there.Bytes()[lo:hi]):
			t.Errorf("request %d (%v) completed without its bytes", i, r.Op)
		}
	}
}

// TestMemoryThatIsTakenAwayFailsItsRequestsAlone takes memory away before requests and under them.
func TestMemoryThatIsTakenAwayFailsItsRequestsAlone(t *testing.T) {
	for _, path := range []string{"local", "tcp"} {
		for _, op := range []moonpath.Op{moonpath.OpWrite, moonpath.OpRead} {
			for _, atTarget := range []bool{false, true} {
				for _, block := range []uint64{512, 256 << 10} {
					for how, lose := range losses {
						side := "initiator"
						code := xfer.Memory
						if atTarget {
							side = "target"
							if path == "tcp" {
								code = xfer.Socket // published engines close without a word, and so do we
							}
						}
						t.Run(fmt.Sprintf("%s/%v/%s/%d/%s", path, op, side, block, how), func(t *testing.T) {
							l := newLoss(t, path, op, atTarget, block)
							b := newBatch(t, l.engine, len(l.requests))
							transfer(t, b, l.requests...)
							fill(l.here.Bytes(), 1)
							fill(l.there.Bytes(), 2)
							f := startTraffic(t, l.engine, l.requests)
							lose(t, l.lost)
							requireFault(t, <-f.ended, code)
							submit(t, b, l.requests...)
							_ = b.Wait(t.Context())
							l.verify(t, b, code)
						})
					}
				}
			}
		}
	}
}

// mapped is another view of a mapping's memory.
func mapped(t testing.TB, m *mapping) []byte {
	t.Helper()
	b, err := unix.Mmap(int(m.file.Fd()), 0, int(m.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	return b
}
