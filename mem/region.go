package mem

import (
	"context"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/moonpath-io/moonpath/xfer"
)

// Region is one registration. Its fields do not change after Register.
type Region struct {
	ID       xfer.RegionID
	Addr     xfer.Addr
	Len      uint64
	Kind     xfer.MemKind
	Location string // "cpu:0", "*"
	Remote   bool   // peers may reach it

	base   unsafe.Pointer  // of the slice that all arithmetic is done on
	pinned *runtime.Pinner // nil for memory that Go does not manage
	uses   atomic.Int64
	closed atomic.Bool   // set by the one call of Table.Close that may remove the region
	idle   chan struct{} // one slot, filled by the last Release after Close
}

// At returns the address of the byte at off; it is sugar for Request.Local.
func (r *Region) At(off uint64) xfer.Addr { return r.Addr + xfer.Addr(off) }

// Bytes returns the whole region. It is valid until the region is unregistered.
func (r *Region) Bytes() []byte { return unsafe.Slice((*byte)(r.base), r.Len) }

// InUse returns how many leases are out.
func (r *Region) InUse() int64 { return r.uses.Load() }

// drain waits until the last lease of a closed region is given back or ctx ends.
func (r *Region) drain(ctx context.Context) error {
	for r.uses.Load() != 0 {
		select {
		case <-r.idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Lease keeps a region usable: Unregister waits for it. The zero Lease holds nothing.
type Lease struct{ Region *Region }

// More adds n holders to a lease that is held.
func (l Lease) More(n int64) { l.Region.uses.Add(n) }

// Release takes n holders off.
func (l Lease) Release(n int64) {
	left := l.Region.uses.Add(-n)
	if left < 0 {
		panic("mem: lease released more often than acquired")
	}
	if left == 0 && l.Region.closed.Load() {
		select {
		case l.Region.idle <- struct{}{}:
		default:
		}
	}
}

// View is the region's memory from off on, n bytes long, valid while the lease is held. The caller keeps
// off+n within the region.
func (l Lease) View(off, n uint64) []byte {
	if off > l.Region.Len || n > l.Region.Len-off {
		panic("mem: view outside the region")
	}
	return l.Region.Bytes()[off : off+n : off+n]
}

// acquire counts first and looks at closed second, Table.Close does the reverse: one of the two always sees
// the other.
func (r *Region) acquire() (Lease, bool) {
	r.uses.Add(1)
	if r.closed.Load() {
		Lease{r}.Release(1)
		return Lease{}, false
	}
	return Lease{r}, true
}

// pointer turns a registered number into the pointer that Bytes starts from.
func pointer(a xfer.Addr) unsafe.Pointer {
	u := uintptr(a)
	return *(*unsafe.Pointer)(unsafe.Pointer(&u))
}

// AddrOf returns the address of a buffer that the Go heap does not hold, such as Mapping.Bytes.
func AddrOf(b []byte) xfer.Addr { return xfer.Addr(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
