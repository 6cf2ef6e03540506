package mem

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/moonpath-io/moonpath/xfer"
)

// Spec describes memory to register: either Addr and Len, for memory that Go does not manage and that the
// caller keeps mapped, or Bytes, which is pinned for the life of the registration.
type Spec struct {
	Addr     xfer.Addr
	Len      uint64
	Bytes    []byte
	Location string // "cpu:0", or "*" and "" for no preference
	Remote   bool   // peers may read and write it
}

// Table is the interval index of all registrations. Its methods may be called from any goroutine; Acquire
// takes no lock.
type Table struct {
	root atomic.Pointer[node]

	mu     sync.Mutex // one writer at a time
	lastID xfer.RegionID
}

// firstPage is the length of the page at address 0.
const firstPage = 4096

// Register adds all of specs in one new version of the table, or none of them. It fails with
// AddressOverlapped if a range shares a byte with another, with InvalidArgument for an empty range, an
// address in the first page or a range that wraps, and with NotSupportedTransport for a location on a device.
func (t *Table) Register(specs []Spec) ([]*Region, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	root, id := t.root.Load(), t.lastID
	regions := make([]*Region, 0, len(specs))
	undo := func(err error) ([]*Region, error) {
		for _, r := range regions {
			unpin(r.pinned)
		}
		return nil, err
	}
	for i := range specs {
		r, err := newRegion(&specs[i])
		if err != nil {
			return undo(err)
		}
		if o := root.overlap(r.Addr, r.Len); o != nil {
			unpin(r.pinned)
			return undo(registerFault(xfer.AddressOverlapped, r.Addr, r.Len, fmt.Sprintf("overlaps the registration %#x + %d", uint64(o.Addr), o.Len)))
		}
		id++
		r.ID = id
		root = root.insert(r)
		regions = append(regions, r)
	}
	t.lastID = id
	t.root.Store(root)
	return regions, nil
}

func newRegion(s *Spec) (*Region, error) {
	addr, length := s.Addr, s.Len
	r := &Region{Location: s.Location, Remote: s.Remote, idle: make(chan struct{}, 1)}
	if s.Bytes != nil {
		if len(s.Bytes) == 0 {
			return nil, registerFault(xfer.InvalidArgument, 0, 0, "the buffer is empty")
		}
		r.base = unsafe.Pointer(&s.Bytes[0])
		addr, length = xfer.Addr(uintptr(r.base)), uint64(len(s.Bytes))
	}
	if r.Location == "" {
		r.Location = "*"
	}
	switch {
	case length == 0:
		return nil, registerFault(xfer.InvalidArgument, addr, length, "length is 0")
	case addr == 0:
		return nil, registerFault(xfer.InvalidArgument, addr, length, "address 0 would make the descriptor unreadable for every peer")
	case addr < firstPage:
		return nil, registerFault(xfer.InvalidArgument, addr, length, "nothing is ever mapped in the first page, and the Go runtime takes pointers into it for corruption")
	case length > xfer.MaxLength || uint64(addr) > math.MaxUint64-length:
		return nil, registerFault(xfer.InvalidArgument, addr, length, "the range leaves the address space")
	case !hostLocation(r.Location):
		return nil, registerFault(xfer.NotSupportedTransport, addr, length,
			fmt.Sprintf("location %q names device memory, which no transport of this version serves; use \"cpu:N\" or \"*\"", r.Location))
	}
	if s.Bytes != nil {
		r.pinned = pin(&s.Bytes[0])
	} else {
		r.base = pointer(addr)
	}
	r.Addr, r.Len = addr, length
	return r, nil
}

// hostLocation accepts the location texts of host memory (wire spec, section 5.3).
func hostLocation(l string) bool {
	return l == "*" || strings.HasPrefix(l, "cpu:") || strings.HasPrefix(l, "segments:")
}

func registerFault(code xfer.Code, addr xfer.Addr, length uint64, detail string) *xfer.Fault {
	return &xfer.Fault{Code: code, Stage: xfer.StageRegister, Detail: fmt.Sprintf("memory %#x + %d: %s", uint64(addr), length, detail)}
}

// Lookup returns the regions that start exactly at the given addresses. One unknown or repeated address
// fails the whole call with AddressNotRegistered, and nothing changes.
func (t *Table) Lookup(addrs []xfer.Addr) ([]*Region, error) {
	root := t.root.Load()
	regions := make([]*Region, 0, len(addrs))
	seen := make(map[xfer.Addr]bool, len(addrs))
	for _, a := range addrs {
		r := root.floor(a)
		if r == nil || r.Addr != a {
			return nil, &xfer.Fault{Code: xfer.AddressNotRegistered, Stage: xfer.StageRegister, Detail: fmt.Sprintf("no registration starts at %#x", uint64(a))}
		}
		if seen[a] {
			return nil, &xfer.Fault{Code: xfer.AddressNotRegistered, Stage: xfer.StageRegister, Detail: fmt.Sprintf("%#x is named twice", uint64(a))}
		}
		seen[a] = true
		regions = append(regions, r)
	}
	return regions, nil
}

// Close revokes regions: no new lease is given, and Close waits until the leases that are out have come
// back. After success the regions belong to the caller, who removes them. If ctx ends first all regions are open
// again, and the error is BatchBusy with ctx's as its cause. A region that another call has closed gives
// AddressNotRegistered, and the others stay open.
func (t *Table) Close(ctx context.Context, regions []*Region) error {
	for i, r := range regions {
		if r.closed.Swap(true) {
			reopen(regions[:i])
			f := registerFault(xfer.AddressNotRegistered, r.Addr, r.Len, "is being unregistered by another call")
			f.Next = "unregister memory once"
			return f
		}
	}
	for _, r := range regions {
		if err := r.drain(ctx); err != nil {
			f := registerFault(xfer.BatchBusy, r.Addr, r.Len, fmt.Sprintf("is still used by %d transfers", r.InUse()))
			f.Cause, f.Next = err, "wait for the transfers that use the memory, then unregister it again"
			reopen(regions)
			return f
		}
	}
	return nil
}

func reopen(regions []*Region) {
	for _, r := range regions {
		r.closed.Store(false)
	}
}

// Remove drops regions that Close has closed, in one new version of the table, and unpins their memory.
func (t *Table) Remove(regions []*Region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	root := t.root.Load()
	for _, r := range regions {
		root = root.remove(r)
		unpin(r.pinned)
	}
	t.root.Store(root)
}

// Acquire leases the region that holds [a, a+n) as a whole, for local use.
func (t *Table) Acquire(a xfer.Addr, n uint64) (Lease, error) {
	r := t.root.Load().floor(a)
	if r != nil && r.Contains(a, n) {
		if l, ok := r.acquire(); ok {
			return l, nil
		}
	}
	return Lease{}, xfer.AddressNotRegistered
}

// AcquireAt leases the region that holds the byte at a; a request may go on in the next region.
func (t *Table) AcquireAt(a xfer.Addr) (Lease, error) { return t.Acquire(a, 1) }

// Contains reports whether [a, a+n) lies inside the region.
func (r *Region) Contains(a xfer.Addr, n uint64) bool {
	off := uint64(a) - uint64(r.Addr)
	return a >= r.Addr && off < r.Len && n <= r.Len-off
}

// All walks the registrations of one version of the table in ascending order of address.
func (t *Table) All() iter.Seq[*Region] {
	root := t.root.Load()
	return func(yield func(*Region) bool) { root.walk(yield) }
}

// Count returns the number of registrations.
func (t *Table) Count() int { return t.root.Load().count() }
