package mem

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/moonpath-io/moonpath/xfer"
)

func TestCloseWaitsForLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table Table
		rs := register(t, &table, Spec{Addr: far, Len: 64}, Spec{Addr: far + 64, Len: 64})
		lease, err := table.Acquire(far+64, 8)
		if err != nil {
			t.Fatal(err)
		}
		lease.More(2)
		var closed atomic.Bool
		var closing sync.WaitGroup
		closing.Go(func() {
			if err := table.Close(t.Context(), rs); err != nil {
				t.Error(err)
			}
			closed.Store(true)
		})
		for range 3 {
			synctest.Wait()
			if closed.Load() {
				t.Fatalf("closed with %d leases out", rs[1].InUse())
			}
			if _, err := table.Acquire(far, 8); !errors.Is(err, xfer.AddressNotRegistered) {
				t.Errorf("acquired while it is being closed: %v", err)
			}
			lease.Release(1)
		}
		closing.Wait()
	})
}

func TestCloseThatRunsOutOfTimeOpensAgain(t *testing.T) {
	var table Table
	rs := register(t, &table, Spec{Bytes: make([]byte, 64)}, Spec{Bytes: make([]byte, 64)}, Spec{Bytes: make([]byte, 64)})
	pinned := len(pins.all)
	lease, err := table.Acquire(rs[1].Addr, 8)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = table.Close(ended, rs)
	if !errors.Is(err, xfer.BatchBusy) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "used by 1 transfers") {
		t.Errorf("Close: %v", err)
	}
	if len(pins.all) != pinned {
		t.Error("memory was unpinned although its region is open again")
	}
	for _, r := range rs {
		l, err := table.Acquire(r.Addr, r.Len)
		if err != nil {
			t.Errorf("region %d is not open again: %v", r.ID, err)
			continue
		}
		l.Release(1)
	}
	lease.Release(1)
	unregister(t, &table, rs)
	if table.Count() != 0 {
		t.Errorf("%d left", table.Count())
	}
}

func TestReleaseTooOftenPanics(t *testing.T) {
	var table Table
	register(t, &table, Spec{Addr: far, Len: 64})
	lease, err := table.Acquire(far, 1)
	if err != nil {
		t.Fatal(err)
	}
	lease.Release(1)
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "released more often") {
			t.Errorf("recovered %v", r)
		}
	}()
	lease.Release(1)
}

func TestViewStaysInside(t *testing.T) {
	var table Table
	rs := register(t, &table, Spec{Bytes: []byte("0123456789")})
	defer unregister(t, &table, rs)
	lease := Lease{Region: rs[0]}
	for _, c := range []struct {
		off, n uint64
		want   string
	}{{0, 10, "0123456789"}, {3, 4, "3456"}, {10, 0, ""}, {9, 1, "9"}} {
		if got := string(lease.View(c.off, c.n)); got != c.want {
			t.Errorf("View(%d, %d) is %q", c.off, c.n, got)
		}
	}
	for _, c := range [][2]uint64{{0, 11}, {10, 1}, {11, 0}, {1, ^uint64(0)}, {^uint64(0), 1}} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(r.(string), "view outside the region") {
					t.Errorf("View(%d, %d): recovered %v", c[0], c[1], r)
				}
			}()
			lease.View(c[0], c[1])
		}()
	}
}

// While a lease is held the region is not closed: the closer marks what it got, the holders look at the mark.
func TestAcquireAndCloseNeverBothWin(t *testing.T) {
	const regions, holders, rounds = 4, 4, 3000
	var table Table
	var gone [regions]atomic.Pointer[Region] // the region at that place whose Close has returned last
	addr := func(i int) xfer.Addr { return far + xfer.Addr(i)*4096 }
	for i := range regions {
		register(t, &table, Spec{Addr: addr(i), Len: 4096})
	}
	var stop atomic.Bool
	var acquired atomic.Int64
	var holding, closing sync.WaitGroup
	for h := range holders {
		holding.Go(func() {
			random := rand.New(rand.NewPCG(uint64(h), 1))
			for !stop.Load() {
				i := random.IntN(regions)
				lease, err := table.Acquire(addr(i)+xfer.Addr(random.IntN(4096)), 1)
				if err != nil {
					continue
				}
				lease.More(1)
				lease.Release(1)
				if gone[i].Load() == lease.Region {
					t.Error("a lease on a region whose Close has returned")
				}
				lease.Release(1)
				acquired.Add(1)
			}
		})
	}
	for c := range 2 {
		closing.Go(func() {
			for n := range rounds {
				i := (n + c) % regions
				rs, err := table.Lookup([]xfer.Addr{addr(i)})
				if err != nil {
					continue
				}
				if err := table.Close(t.Context(), rs); err != nil {
					if !errors.Is(err, xfer.AddressNotRegistered) {
						t.Error(err)
					}
					continue
				}
				gone[i].Store(rs[0])
				if n := rs[0].InUse(); n < 0 || n > holders { // those who look and turn away count for a moment
					t.Errorf("%d leases after Close", n)
				}
				table.Remove(rs)
				register(t, &table, Spec{Addr: addr(i), Len: 4096})
			}
		})
	}
	closing.Wait()
	stop.Store(true)
	holding.Wait()
	if acquired.Load() == 0 || table.Count() != regions {
		t.Errorf("%d leases were had, %d regions are left", acquired.Load(), table.Count())
	}
}
