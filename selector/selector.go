package selector

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// Question is what is asked about one request. Requests that ask the same of the same View get the same
// answer, so a Question is a cache key together with View.Gen.
type Question struct {
	Op   xfer.Op
	Pin  xfer.Pin
	Size uint8 // SizeClass of the length
	Kind xfer.MemKind
}

// SizeClass returns the class of a length: the number of bits it takes. Costs are compared at the smallest
// length of the class, so for powers of two they are exact.
func SizeClass(n uint64) uint8 { return uint8(bits.Len64(n)) }

// SizeClasses is the number of size classes.
const SizeClasses = 65

func classBytes(class uint8) uint64 {
	if class == 0 {
		return 0
	}
	return 1 << (class - 1)
}

// Row is one path to the peer: an offer of a transport, or a transport that is named by the peer or by a
// pin and is not there; then Offer.Refused says why.
type Row struct {
	Path  string // transport
	Pin   xfer.Pin
	Offer transport.Offer
}

// View is an immutable snapshot of the paths to one peer; a new descriptor or offer makes a new one. The
// order of Rows is the order of preference among equal costs.
type View struct {
	Gen  uint64
	Rows []Row
}

// Ranked is a usable row with its predicted cost.
type Ranked struct {
	Row  uint16
	Cost time.Duration
}

// Decision records one answer for people: every row, with its cost or the reasons against it.
type Decision struct {
	Op     string      `json:"op"`
	Size   uint64      `json:"size_bytes"` // length that the costs were compared at
	Pin    string      `json:"pin,omitempty"`
	Gen    uint64      `json:"generation"`
	Chosen int         `json:"chosen"` // index into Rows; -1: none
	Rows   []Explained `json:"rows"`
	// Side has to change something, and Next says what, before any row can be used; both are empty where one is chosen.
	Side xfer.Side `json:"side,omitempty"`
	Next string    `json:"next,omitempty"`
	// Doubts speak against the request whichever path it takes; only the explanation of a whole request has them.
	Doubts []transport.Reason `json:"doubts,omitempty"`
}

// Path returns the chosen transport, and its rail where there are several; "" if nothing was usable.
func (d *Decision) Path() string {
	if d.Chosen < 0 {
		return ""
	}
	r := &d.Rows[d.Chosen]
	if r.Rail == "" {
		return r.Path
	}
	return r.Path + " " + r.Rail
}

// Explained is one row of a Decision.
type Explained struct {
	Path      string             `json:"path"`
	Rail      string             `json:"rail,omitempty"`
	Cost      transport.Cost     `json:"cost"`
	Predicted time.Duration      `json:"predicted_ns"`
	Rejected  []transport.Reason `json:"rejected,omitempty"`
}

// Rank appends the usable rows of v to dst, cheapest first, rows of equal cost in the order of the view. If
// rec is not nil it is filled with all rows and the reasons; the order is the same with and without it.
func Rank(v *View, q Question, dst []Ranked, rec *Decision) []Ranked {
	size := classBytes(q.Size)
	if rec != nil {
		*rec = Decision{Op: q.Op.String(), Size: size, Gen: v.Gen, Chosen: -1, Rows: make([]Explained, len(v.Rows))}
	}
	first := len(dst)
	for i := range v.Rows {
		r := &v.Rows[i]
		usable := r.usable(q)
		cost := r.Offer.Cost.Of(size)
		if usable {
			dst = append(dst, Ranked{Row: uint16(i), Cost: cost})
		}
		if rec != nil {
			rec.Rows[i] = Explained{Path: r.Path, Rail: r.Offer.Rail, Cost: r.Offer.Cost, Predicted: cost}
			if !usable {
				rec.Rows[i].Rejected = r.reasons(v, q)
			}
			if r.Pin == q.Pin && q.Pin != xfer.NoPin {
				rec.Pin = r.Path
			}
		}
	}
	slices.SortStableFunc(dst[first:], func(a, b Ranked) int { return cmp.Compare(a.Cost, b.Cost) })
	if rec != nil && len(dst) > first {
		rec.Chosen = int(dst[first].Row)
	}
	return dst
}

func (r *Row) usable(q Question) bool {
	return len(r.Offer.Refused) == 0 && (q.Pin == xfer.NoPin || q.Pin == r.Pin) && r.Offer.Ops.Has(q.Op) && r.Offer.Serves(q.Kind)
}

// reasons lists everything that speaks against a row, so that correcting the first is not followed by a
// surprise.
func (r *Row) reasons(v *View, q Question) []transport.Reason {
	all := slices.Clone(r.Offer.Refused)
	if q.Pin != xfer.NoPin && q.Pin != r.Pin {
		all = append(all, transport.Reason{Code: "pin", Want: v.pinName(q.Pin), Have: r.Path, Side: xfer.SideCaller})
	}
	if len(r.Offer.Refused) > 0 {
		return all
	}
	if !r.Offer.Ops.Has(q.Op) {
		all = append(all, transport.Reason{Code: "operation", Want: q.Op.String(), Have: "not offered by " + r.Path, Side: xfer.SideCaller})
	}
	if !r.Offer.Serves(q.Kind) {
		all = append(all, transport.Reason{Code: "memory", Want: q.Kind.String(), Have: "not served by " + r.Path, Side: xfer.SideCaller})
	}
	return all
}

func (v *View) pinName(p xfer.Pin) string {
	for i := range v.Rows {
		if v.Rows[i].Pin == p {
			return v.Rows[i].Path
		}
	}
	return "a transport that is not known here"
}
