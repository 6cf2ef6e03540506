package transport_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

func TestSetsHoldWhatTheyAreMadeOf(t *testing.T) {
	for s := range transport.QueueSet(8) {
		var of []transport.Queue
		for q := range transport.Queues {
			if s.Has(q) {
				of = append(of, q)
			}
		}
		if got := transport.Set(of...); got != s {
			t.Errorf("the set of %v is %b, want %b", of, got, s)
		}
	}
	only := transport.OpSet(1 << xfer.Write)
	for op, want := range map[xfer.Op]bool{xfer.Write: true, xfer.Read: false, 2: false, 8: false, 255: false} {
		if only.Has(op) != want {
			t.Errorf("writes only has operation %d: %v", op, !want)
		}
	}
	if b := transport.BothOps; !b.Has(xfer.Read) || !b.Has(xfer.Write) || b.Has(2) || b.Has(8) || b.Has(9) {
		t.Error("both operations are not reading and writing")
	}
}

func TestOfferServesItsKindsOnly(t *testing.T) {
	o := transport.Offer{Local: []xfer.MemKind{3}}
	if o.Serves(xfer.HostMem) || !o.Serves(3) {
		t.Errorf("%+v serves host memory: %v, kind 3: %v", o, o.Serves(xfer.HostMem), o.Serves(3))
	}
}

func TestCostIsALine(t *testing.T) {
	c := transport.Cost{Setup: 10 * time.Microsecond, PerMiB: time.Millisecond}
	for n, want := range map[uint64]time.Duration{
		0:              10 * time.Microsecond,
		1 << 20:        1010 * time.Microsecond,
		1 << 19:        510 * time.Microsecond,
		1 << 30:        1024*time.Millisecond + 10*time.Microsecond,
		1 << 62:        1<<42*time.Millisecond + 10*time.Microsecond,
		math.MaxUint64: math.MaxInt64,
	} {
		if got := c.Of(n); (got - want).Abs() > want/1e9 {
			t.Errorf("%d bytes cost %v, want %v", n, got, want)
		}
	}
}

// A cost that overflows would make the dearest path the cheapest.
func TestMoreBytesNeverCostLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64Min(0).Draw(t, "ns")) })
		c := transport.Cost{Setup: length.Draw(t, "setup"), PerMiB: length.Draw(t, "per MiB")}
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		if less, more := c.Of(min(a, b)), c.Of(max(a, b)); less < 0 || more < less {
			t.Fatalf("%+v: %d bytes cost %v, %d cost %v", c, min(a, b), less, max(a, b), more)
		}
	})
}

func TestWordsForReports(t *testing.T) {
	for q, want := range map[transport.Quietness]string{transport.Unquiet: "not quiet", transport.LocalQuiet: "locally quiet", transport.Quiet: "quiet", 9: "not quiet"} {
		if got := q.String(); got != want {
			t.Errorf("quietness %d is %q, want %q", q, got, want)
		}
	}
	if got := (transport.Reason{Code: "boot-id", Want: "91c4", Have: "07be"}).String(); got != "boot-id: want 91c4, have 07be" {
		t.Errorf("the reason is %q", got)
	}
}

func TestMemoryOfAChunk(t *testing.T) {
	var table mem.Table
	rs, err := table.Register([]mem.Spec{{Bytes: []byte("moonpath")}})
	if err != nil {
		t.Fatal(err)
	}
	c := transport.Chunk{Local: mem.Lease{Region: rs[0]}, Off: 4, Len: 3}
	if got := string(c.Memory()); got != "pat" {
		t.Errorf("memory is %q", got)
	}
	if err := table.Close(t.Context(), rs); err != nil {
		t.Fatal(err)
	}
	table.Remove(rs)
}
