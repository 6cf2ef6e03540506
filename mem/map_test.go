package mem

import (
	"errors"
	"math"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/xfer"
)

func addressOf(m *Mapping) xfer.Addr {
	return xfer.Addr(uintptr(unsafe.Pointer(unsafe.SliceData(m.Bytes()))))
}

// resident counts the pages that are present.
func resident(t *testing.T, b []byte) (n int) {
	t.Helper()
	pages := make([]byte, (len(b)+unix.Getpagesize()-1)/unix.Getpagesize())
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, p := range pages {
		n += int(p & 1)
	}
	return n
}

func TestMapGivesZeroedPages(t *testing.T) {
	page := unix.Getpagesize()
	for _, n := range []uint64{1, uint64(page) - 1, uint64(page), 3*uint64(page) + 5, HugePageSize, 3 * HugePageSize} {
		for _, populate := range []bool{false, true} {
			m, err := Map(n, populate)
			if err != nil {
				t.Fatalf("Map(%d, %v): %v", n, populate, err)
			}
			b := m.Bytes()
			if uint64(len(b)) != n || uint64(addressOf(m))%uint64(page) != 0 {
				t.Errorf("Map(%d, %v): %d bytes at %#x", n, populate, len(b), addressOf(m))
			}
			want := 0
			if populate {
				want = (len(b) + page - 1) / page
			}
			if got := resident(t, b); got != want {
				t.Errorf("Map(%d, %v): %d pages are present, want %d", n, populate, got, want)
			}
			for _, i := range []uint64{0, n / 2, n - 1} {
				if b[i] != 0 {
					t.Errorf("Map(%d, %v): byte %d is %d", n, populate, i, b[i])
				}
			}
			b[n-1] = 1
			if m.Huge() && n%HugePageSize != 0 {
				t.Errorf("Map(%d, %v) says that it has huge pages", n, populate)
			}
			for range 2 {
				if err := m.Free(); err != nil || m.Bytes() != nil {
					t.Errorf("Free: %v, %d bytes left", err, len(m.Bytes()))
				}
			}
		}
	}
}

// Kernels before 5.14 have no call for it; the loop has to do the same.
func TestTouchByHandPopulates(t *testing.T) {
	m, err := Map(10*uint64(unix.Getpagesize())+1, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	m.touchByHand()
	if n := resident(t, m.Bytes()); n != 11 {
		t.Errorf("%d pages are present, want 11", n)
	}
}

func TestMapRefusesImpossibleLengths(t *testing.T) {
	for _, c := range []struct {
		n    uint64
		want xfer.Code
	}{{0, xfer.InvalidArgument}, {1 << 63, xfer.InvalidArgument}, {math.MaxUint64, xfer.InvalidArgument}, {1 << 62, xfer.Memory}, {math.MaxInt64, xfer.Memory}} {
		m, err := Map(c.n, false)
		if m != nil || !errors.Is(err, c.want) {
			t.Errorf("Map(%d): %v, want %s", c.n, err, c.want.Name())
		}
		var f *xfer.Fault
		if c.want == xfer.Memory && (!errors.As(err, &f) || f.Errno() != syscall.ENOMEM) {
			t.Errorf("Map(%d): the system's error is not in %v", c.n, err)
		}
	}
}

// Pinning memory that Go does not manage must be harmless: callers register what Map gave them as a slice.
func TestMappedMemoryRegistersAsASlice(t *testing.T) {
	m, err := Map(4096, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	var table Table
	rs := register(t, &table, Spec{Bytes: m.Bytes()})
	if rs[0].Addr != addressOf(m) {
		t.Errorf("registered %#x, want %#x", rs[0].Addr, addressOf(m))
	}
	unregister(t, &table, rs)
}
