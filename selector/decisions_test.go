package selector

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// TestDecisions asks what testdata/decisions.txt asks; the file explains its format.
func TestDecisions(t *testing.T) {
	text, err := os.ReadFile("testdata/decisions.txt")
	if err != nil {
		t.Fatal(err)
	}
	var (
		v         View
		name, ask string
		got, want []string
		asked     int
	)
	check := func() {
		if ask == "" {
			return
		}
		asked++
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s (-want +got):\n%s", name, ask, diff)
		}
		ask, want = "", nil
	}
	for i, line := range strings.Split(string(text), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "", "#":
		case "view":
			check()
			v, name = View{Gen: uint64(i)}, fmt.Sprintf("line %d: %s", i+1, rest)
		case "row":
			v.Rows = append(v.Rows, parseRow(t, strings.Fields(rest)))
		case "ask":
			check()
			ask, got = line, decide(t, &v, parseQuestion(t, strings.Fields(rest)))
		case ">":
			want = append(want, rest)
		default:
			t.Fatalf("line %d: no such word: %s", i+1, word)
		}
	}
	check()
	if asked == 0 {
		t.Error("nothing was asked")
	}
}

func decide(t *testing.T, v *View, q Question) []string {
	t.Helper()
	var d Decision
	ranked := Rank(v, q, nil, &d)
	if d.Gen != v.Gen {
		t.Errorf("generation %d, want %d", d.Gen, v.Gen)
	}
	head := fmt.Sprintf("%s of %d", d.Op, d.Size)
	if d.Pin != "" {
		head += " pinned to " + d.Pin
	}
	if d.Chosen < 0 {
		head += ": none"
	} else {
		head += fmt.Sprintf(": row %d", d.Chosen)
	}
	lines := []string{head}
	for place, r := range ranked {
		row := d.Rows[r.Row]
		lines = append(lines, fmt.Sprintf("%d. %s %s", place+1, strings.TrimSpace(row.Path+" "+row.Rail), row.Predicted))
	}
	for _, row := range d.Rows {
		if len(row.Rejected) == 0 {
			continue
		}
		var reasons []string
		for _, r := range row.Rejected {
			reasons = append(reasons, r.String())
		}
		lines = append(lines, row.Path+": "+strings.Join(reasons, "; "))
	}
	return lines
}

func parseRow(t *testing.T, fields []string) Row {
	t.Helper()
	r := Row{Path: fields[0], Offer: transport.Offer{Ops: transport.BothOps, Local: []xfer.MemKind{xfer.HostMem}}}
	for _, f := range fields[1:] {
		key, value, _ := strings.Cut(f, "=")
		switch key {
		case "pin":
			r.Pin = xfer.Pin(number(t, value))
		case "rail":
			r.Offer.Rail = value
		case "ops":
			r.Offer.Ops = map[string]transport.OpSet{"r": 1 << xfer.Read, "w": 1 << xfer.Write}[value]
		case "mem":
			r.Offer.Local = []xfer.MemKind{xfer.MemKind(number(t, value))}
		case "setup":
			r.Offer.Cost.Setup = duration(t, value)
		case "mib":
			r.Offer.Cost.PerMiB = duration(t, value)
		case "no":
			parts := strings.Split(value, "/")
			r.Offer.Refused = append(r.Offer.Refused, transport.Reason{Code: parts[0], Want: parts[1], Have: parts[2]})
		default:
			t.Fatalf("row %v: no such key: %s", fields, key)
		}
	}
	return r
}

func parseQuestion(t *testing.T, fields []string) Question {
	t.Helper()
	op, ok := map[string]xfer.Op{"read": xfer.Read, "write": xfer.Write}[fields[0]]
	if !ok {
		t.Fatalf("ask %v: no such operation", fields)
	}
	q := Question{Op: op, Size: SizeClass(number(t, fields[1]))}
	for _, f := range fields[2:] {
		key, value, _ := strings.Cut(f, "=")
		switch key {
		case "pin":
			q.Pin = xfer.Pin(number(t, value))
		case "mem":
			q.Kind = xfer.MemKind(number(t, value))
		default:
			t.Fatalf("ask %v: no such key: %s", fields, key)
		}
	}
	return q
}

func number(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPathOfADecision(t *testing.T) {
	rows := []Explained{{Path: "tcp"}, {Path: "rdma", Rail: "mlx5_0 > mlx5_2"}}
	for chosen, want := range map[int]string{-1: "", 0: "tcp", 1: "rdma mlx5_0 > mlx5_2"} {
		if got := (&Decision{Chosen: chosen, Rows: rows}).Path(); got != want {
			t.Errorf("row %d is %q, want %q", chosen, got, want)
		}
	}
}
