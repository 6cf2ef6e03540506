package moonpath_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

// TestOneFailingRequestLeavesTheOthersAlone puts one request that cannot succeed among a hundred.
func TestOneFailingRequestLeavesTheOthersAlone(t *testing.T) {
	const count = 100
	for _, path := range []string{"local", "tcp"} {
		for _, block := range []uint64{512, 40 << 10} {
			target, source := openEngine(t, nil), openEngine(t, nil)
			there, here := alloc(t, target, count*block), alloc(t, source, count*block)
			private := allocPrivate(t, target, block)
			gone := unregistered(t, target, block)
			id, pin, rdma := open(t, source, target), pinned(t, source, path), pinned(t, source, "rdma")
			b := newBatch(t, source, count)

			for _, bad := range []struct {
				name  string
				spoil func(*moonpath.Request)
				code  moonpath.Code
			}{
				{"remote memory unregistered", func(r *moonpath.Request) { r.Remote = gone }, xfer.Refused},
				{"remote memory private", func(r *moonpath.Request) { r.Remote = uint64(private.At(0)) }, xfer.Refused},
				{"remote range leaves the registration", func(r *moonpath.Request) { r.Remote = uint64(there.At(there.Len())) - 1 }, xfer.Refused},
				{"remote range wraps", func(r *moonpath.Request) { r.Remote = math.MaxUint64 - 1 }, xfer.InvalidArgument},
				{"local memory unregistered", func(r *moonpath.Request) { r.Local = moonpath.Addr(gone) }, xfer.AddressNotRegistered},
				{"local range leaves the registration", func(r *moonpath.Request) { r.Local = here.At(here.Len() - 1) }, xfer.AddressNotRegistered},
				{"local range wraps", func(r *moonpath.Request) { r.Local = math.MaxUint64 - 1 }, xfer.InvalidArgument},
				{"length above all", func(r *moonpath.Request) { r.Len = math.MaxUint64 }, xfer.InvalidArgument},
				{"segment unknown", func(r *moonpath.Request) { r.Target = 77 }, xfer.InvalidArgument},
				{"operation unknown", func(r *moonpath.Request) { r.Op = 2 }, xfer.InvalidArgument},
				{"transport not there", func(r *moonpath.Request) { r.Pin = rdma }, xfer.NotSupportedTransport},
			} {
				for _, op := range []moonpath.Op{moonpath.OpWrite, moonpath.OpRead} {
					for _, at := range []int{0, 57, count - 1} {
						t.Run(fmt.Sprintf("%s/%d/%s/%s/at %d", path, block, bad.name, op, at), func(t *testing.T) {
							from, to := here.Bytes(), there.Bytes()
							if op == moonpath.OpRead {
								from, to = to, from
							}
							fill(from, byte(at+1))
							clear(to)
							requests := rows(op, pin, here, id, there, count, block)
							bad.spoil(&requests[at])
							submit(t, b, requests...)
							err := b.Wait(t.Context())
							requireFault(t, err, bad.code)

							for i := range count {
								s, err := b.Status(i)
								if err != nil {
									t.Fatal(err)
								}
								lo, hi := uint64(i)*block, uint64(i+1)*block
								switch {
								case i == at:
									if s.State != xfer.Failed || !errors.Is(s.Err, bad.code) || s.Bytes != 0 && s.Bytes >= requests[i].Len {
										t.Errorf("the bad request: %+v, want failed with %v", s, bad.code)
									}
								case s.State != xfer.Completed || s.Bytes != block || s.Err != nil:
									t.Errorf("request %d: %+v, want completed", i, s)
								case !bytes.Equal(from[lo:hi], to[lo:hi]):
									t.Errorf("request %d completed without its bytes", i)
								}
							}
							overall, err := source.GetBatchTransferStatus(b.ID())
							if err != nil || overall.State != xfer.Failed || !errors.Is(overall.Err, bad.code) {
								t.Errorf("the batch as a whole: %+v, %v, want failed with %v", overall, err, bad.code)
							}
						})
					}
				}
			}
			t.Run(fmt.Sprintf("%s/%d/good again", path, block), func(t *testing.T) {
				fill(here.Bytes(), 99)
				transfer(t, b, rows(moonpath.OpWrite, pin, here, id, there, count, block)...)
				if !bytes.Equal(here.Bytes(), there.Bytes()) {
					t.Error("after all failures the path does not carry bytes any more")
				}
			})
		}
	}
}

// rows cuts two memories of the same length into equal requests.
func rows(op moonpath.Op, pin moonpath.Pin, here *moonpath.Memory, id moonpath.SegmentID, there *moonpath.Memory, count int, block uint64) []moonpath.Request {
	requests := make([]moonpath.Request, count)
	for i := range requests {
		off := uint64(i) * block
		requests[i] = moonpath.Request{Op: op, Pin: pin, Local: here.At(off), Len: block, Target: id, Remote: uint64(there.At(off))}
	}
	return requests
}
