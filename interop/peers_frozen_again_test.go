package interop

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

// TestR_LIV_1_AFrozenCxxTargetEndsLaterRequestsInTime has default settings, and batches one after the other: the kernel of a
// frozen target accepts connections, so that each of them has to find out anew.
func TestR_LIV_1_AFrozenCxxTargetEndsLaterRequestsInTime(t *testing.T) {
	needCxx(t)
	const block, count, limit = 64 * kib, 200, 5 * time.Second
	for name, c := range map[string]struct {
		protocol string
		suspect  bool
	}{"v2": {"2", false}, "v1": {"1", false}, "v2, not published": {"2", true}} {
		t.Run(name, func(t *testing.T) {
			p, pid := startWithPid(t)
			remote := allocCxx(t, p, block*count)
			e := openEngine(t, map[string]string{"tcp.protocol": c.protocol})
			local, id := alloc(t, e, block*count), openSegment(t, e, p.Name)
			if c.suspect {
				remote = allocCxx(t, p, block*count) // registered after the description was fetched
			}
			rs := writes(local, id, remote, count, block)
			for i := range rs {
				if i%2 == 1 {
					rs[i].Op = moonpath.OpRead
				}
			}
			if _, err := run(t, e, rs); err != nil {
				t.Fatal(err)
			}
			stop(t, pid)
			for round := range 2 {
				start := time.Now()
				_, err := run(t, e, rs)
				took := time.Since(start)
				wantFault(t, "requests to a frozen target", err, xfer.Deadline)
				if took > limit {
					t.Errorf("batch %d to a frozen target took %v, want at most %v", round, took, limit)
				}
			}
			if err := unix.Kill(pid, unix.SIGCONT); err != nil {
				t.Fatal(err)
			}
		})
	}
}
