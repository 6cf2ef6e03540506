package transport

import (
	"math"
	"slices"
	"time"

	"github.com/moonpath-io/moonpath/xfer"
)

// Offer is one row of the capability table that the selector reads.
type Offer struct {
	Rail    string // "mlx5_0 > mlx5_2"; "" where there is one
	Local   []xfer.MemKind
	Ops     OpSet
	Cost    Cost
	Refused []Reason // empty if usable
}

// OpSet is a set of operations.
type OpSet uint8

// BothOps is what a path that can read and write offers.
const BothOps = OpSet(1<<xfer.Read | 1<<xfer.Write)

// Has reports whether op is in the set.
func (s OpSet) Has(op xfer.Op) bool { return s>>op&1 != 0 }

// Serves reports whether local memory of that kind can be used.
func (o *Offer) Serves(kind xfer.MemKind) bool { return slices.Contains(o.Local, kind) }

// Cost is a straight line over size, so that costs compare.
type Cost struct {
	Setup  time.Duration `json:"setup_ns"`   // of one request
	PerMiB time.Duration `json:"per_mib_ns"` // of 2^20 bytes
	Origin string        `json:"origin"`     // "declared", "probed", "measured"
}

// Of returns the predicted time for n bytes; what does not fit is the longest time there is.
func (c Cost) Of(n uint64) time.Duration {
	t := float64(c.Setup) + float64(c.PerMiB)*float64(n)/(1<<20)
	if t >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(t)
}

// Reason says why something is not usable: Code "boot-id" wants "91c4…", has "07be…". A transport may leave Side and
// Next to the engine, which knows them by the code.
type Reason struct {
	Code string    `json:"code"`
	Want string    `json:"want"`
	Have string    `json:"have"`
	Side xfer.Side `json:"side,omitempty"` // who would have to change something
	Next string    `json:"next,omitempty"` // what, in words
}

// String returns the reason in one line.
func (r Reason) String() string { return r.Code + ": want " + r.Want + ", have " + r.Have }
