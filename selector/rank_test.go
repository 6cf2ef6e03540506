package selector

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// Few distinct costs, pins and kinds, so that ties, pins and refusals are common.
var (
	anyQuestion = rapid.Custom(func(t *rapid.T) Question {
		return Question{
			Op:   xfer.Op(rapid.IntRange(0, 1).Draw(t, "op")),
			Pin:  xfer.Pin(rapid.IntRange(0, 3).Draw(t, "pin")),
			Size: uint8(rapid.IntRange(0, 40).Draw(t, "size")),
			Kind: xfer.MemKind(rapid.IntRange(0, 1).Draw(t, "kind")),
		}
	})
	anyRow = rapid.Custom(func(t *rapid.T) Row {
		pin := rapid.IntRange(0, 3).Draw(t, "pin")
		r := Row{Path: []string{"named", "tcp", "shm", "rdma"}[pin], Pin: xfer.Pin(pin)}
		r.Offer.Ops = transport.OpSet(rapid.IntRange(1, 3).Draw(t, "ops"))
		r.Offer.Local = []xfer.MemKind{xfer.HostMem, 1}[:rapid.IntRange(1, 2).Draw(t, "kinds")]
		r.Offer.Cost.Setup = time.Duration(rapid.IntRange(0, 3).Draw(t, "setup")) * time.Microsecond
		r.Offer.Cost.PerMiB = time.Duration(rapid.IntRange(0, 3).Draw(t, "mib")) * 10 * time.Microsecond
		if rapid.IntRange(0, 4).Draw(t, "refused") == 0 {
			r.Offer.Refused = []transport.Reason{{Code: "boot-id", Want: "a", Have: "b"}}
		}
		return r
	})
	anyView = rapid.Custom(func(t *rapid.T) View { return View{Rows: rapid.SliceOfN(anyRow, 0, 12).Draw(t, "rows")} })
)

func insert(t *rapid.T, v View, r Row) (wider View, at int) {
	at = rapid.IntRange(0, len(v.Rows)).Draw(t, "at")
	return View{Rows: slices.Insert(slices.Clone(v.Rows), at, r)}, at
}

func TestAnUnusableRowNeverChangesTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, q, extra := anyView.Draw(t, "view"), anyQuestion.Draw(t, "question"), anyRow.Draw(t, "extra")
		switch rapid.IntRange(0, 3).Draw(t, "because of") {
		case 0:
			extra.Offer.Refused = []transport.Reason{{Code: "installed"}}
		case 1:
			extra.Offer.Ops &^= 1 << q.Op
		case 2:
			extra.Offer.Local = []xfer.MemKind{q.Kind + 1}
		case 3:
			q.Pin, extra.Pin = 1, 2
		}
		wider, at := insert(t, v, extra)
		want := Rank(&v, q, nil, nil)
		for i := range want {
			if int(want[i].Row) >= at {
				want[i].Row++
			}
		}
		if diff := cmp.Diff(want, Rank(&wider, q, nil, nil)); diff != "" {
			t.Fatalf("with an unusable row at %d (-want +got):\n%s", at, diff)
		}
	})
}

func TestAnOfferNeverRaisesTheChosenCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, q := anyView.Draw(t, "view"), anyQuestion.Draw(t, "question")
		wider, at := insert(t, v, anyRow.Draw(t, "extra"))
		before, after := Rank(&v, q, nil, nil), Rank(&wider, q, nil, nil)
		if len(before) > 0 && (len(after) == 0 || after[0].Cost > before[0].Cost) {
			t.Fatalf("with one more row at %d: %v became %v", at, before, after)
		}
	})
}

func TestExplainGivesTheOrderOfTheHotPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, q := anyView.Draw(t, "view"), anyQuestion.Draw(t, "question")
		kept := []Ranked{{Row: 7, Cost: time.Hour}, {Row: 8}}
		ranked := Rank(&v, q, slices.Clone(kept), nil)
		d := Decision{Op: "stale", Chosen: 3, Pin: "stale", Rows: make([]Explained, 2)}
		if diff := cmp.Diff(ranked, Rank(&v, q, slices.Clone(kept), &d)); diff != "" {
			t.Fatalf("without and with a record (-without +with):\n%s", diff)
		}
		if diff := cmp.Diff(kept, ranked[:len(kept)]); diff != "" {
			t.Fatalf("what dst held before (-want +got):\n%s", diff)
		}
		ranked = ranked[len(kept):]
		chosen := -1
		if len(ranked) > 0 {
			chosen = int(ranked[0].Row)
		}
		if d.Chosen != chosen || len(d.Rows) != len(v.Rows) || d.Op != q.Op.String() || d.Pin == "stale" {
			t.Fatalf("decision %+v, want row %d of %d", d, chosen, len(v.Rows))
		}
		for i, row := range d.Rows {
			places := 0
			for _, r := range ranked {
				if int(r.Row) == i {
					places++
					if r.Cost != row.Predicted {
						t.Errorf("row %d is ranked at %s and explained with %s", i, r.Cost, row.Predicted)
					}
				}
			}
			if usable := len(row.Rejected) == 0; places > 1 || usable != (places == 1) {
				t.Errorf("row %d has %d places and %d reasons against it", i, places, len(row.Rejected))
			}
		}
		for i := 1; i < len(ranked); i++ {
			a, b := ranked[i-1], ranked[i]
			if a.Cost > b.Cost || a.Cost == b.Cost && a.Row > b.Row {
				t.Errorf("places %d and %d are out of order: %v, %v", i-1, i, a, b)
			}
		}
	})
}

// Short slices come out of any sort in order, so this one is long.
func TestManyEqualCostsKeepTheOrderOfTheView(t *testing.T) {
	v := View{Rows: make([]Row, 90)}
	for i := range v.Rows {
		v.Rows[i].Offer = transport.Offer{
			Ops: transport.BothOps, Local: []xfer.MemKind{xfer.HostMem}, Cost: transport.Cost{Setup: time.Duration(i % 3)},
		}
	}
	for i, r := range Rank(&v, Question{}, nil, nil) {
		if want := i%30*3 + i/30; int(r.Row) != want {
			t.Errorf("place %d: row %d, want %d", i, r.Row, want)
		}
	}
}

// A View is shared by all submitters, and a transport's reasons may have room behind them.
func TestRankLeavesTheViewAlone(t *testing.T) {
	reasons := []transport.Reason{{Code: "boot-id"}, {Code: "behind"}}
	v := View{Rows: []Row{{Path: "shm", Pin: 1, Offer: transport.Offer{Refused: reasons[:1]}}}}
	var d Decision
	Rank(&v, Question{Pin: 2}, nil, &d)
	if len(d.Rows[0].Rejected) != 2 {
		t.Errorf("reasons %v, want the transport's and the pin", d.Rows[0].Rejected)
	}
	if reasons[1].Code != "behind" || len(v.Rows[0].Offer.Refused) != 1 {
		t.Errorf("the transport's reasons became %v", reasons)
	}
}

func TestSizeClass(t *testing.T) {
	for _, tc := range []struct {
		length, compared uint64
		class            uint8
	}{
		{0, 0, 0},
		{1, 1, 1},
		{2, 2, 2},
		{3, 2, 2},
		{4095, 2048, 12},
		{4096, 4096, 13},
		{4097, 4096, 13},
		{xfer.MaxLength, 1 << 62, 63},
		{math.MaxUint64, 1 << 63, SizeClasses - 1},
	} {
		if got := SizeClass(tc.length); got != tc.class || classBytes(got) != tc.compared {
			t.Errorf("%d bytes: class %d at %d, want %d at %d", tc.length, got, classBytes(got), tc.class, tc.compared)
		}
	}
}
