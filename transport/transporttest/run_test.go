package transporttest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExceptionsNeedAKnownNameAndAReason(t *testing.T) {
	for _, tc := range []struct {
		without map[Capability]string
		want    []string
	}{
		{nil, nil},
		{map[Capability]string{Freezing: "one process"}, nil},
		{map[Capability]string{Freezing: ""}, []string{`excepts "freeze" without a reason`}},
		{map[Capability]string{"completion/exactly once": "it fails"}, []string{`names "completion/exactly once", which is no capability`}},
		{map[Capability]string{"x": ""}, []string{`names "x"`, `excepts "x" without a reason`}},
	} {
		got := Options{Without: tc.without}.complaints()
		if len(got) != len(tc.want) {
			t.Fatalf("%v: %q", tc.without, got)
		}
		for i := range got {
			if !strings.Contains(got[i], tc.want[i]) {
				t.Errorf("%v: %q, want %q", tc.without, got[i], tc.want[i])
			}
		}
	}
}

func TestHooksAndExceptionsHaveToFit(t *testing.T) {
	hook := func() {}
	for _, tc := range []struct {
		name    string
		pair    Pair
		without []Capability
		needs   []Capability
		want    string
	}{
		{"nothing needed", Pair{}, nil, nil, ""},
		{"hook and need", Pair{Kill: hook}, nil, []Capability{Killing}, ""},
		{"excepted", Pair{}, []Capability{Killing}, nil, ""},
		{"no hook to kill", Pair{}, nil, []Capability{Killing}, `no hook to kill its target; give it one, or say in Options.Without["kill"]`},
		{"half a hook to freeze", Pair{Freeze: hook}, nil, []Capability{Freezing}, "no hook to freeze"},
		{"no hook to restart", Pair{}, nil, []Capability{Restarting}, "no hook to restart"},
		{"hook and exception", Pair{Kill: hook}, []Capability{Killing}, nil, "take one of the two away"},
		{"no hook needed", Pair{}, nil, []Capability{ZeroAllocation, StallLimit}, ""},
	} {
		opt := Options{Without: map[Capability]string{}}
		for _, c := range tc.without {
			opt.Without[c] = "why not"
		}
		got := strings.Join(tc.pair.complaints(opt, tc.needs), "\n")
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestASkippedCaseSaysWhyAndOpensNothing(t *testing.T) {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		opt := Options{Without: map[Capability]string{Freezing: "it is made of ice"}}.withDefaults()
		perform(r, testCase{name: "x", needs: []Capability{Freezing}, run: func(*rig) { r.Error("the case ran") }}, "g", opt, func() Pair {
			r.Error("a pair was opened")
			return Pair{}
		})
	}()
	<-done
	if !r.skipped || r.failed || !strings.Contains(r.log, "without freeze: it is made of ice") {
		t.Errorf("skipped %v, failed %v: %s", r.skipped, r.failed, r.log)
	}
}

func TestCasesHaveNamesAndDemandsOfTheirOwn(t *testing.T) {
	names, demands := map[string]bool{}, map[string]bool{}
	for _, g := range groups {
		if len(g.cases) == 0 {
			t.Errorf("group %s is empty", g.name)
		}
		for _, c := range g.cases {
			name := g.name + "/" + c.name
			if c.name == "" || names[name] {
				t.Errorf("%q is there twice", name)
			}
			names[name] = true
			demand := digits.ReplaceAllString(name, "") + c.demands
			if c.demands == "" || demands[demand] && !digits.MatchString(c.name) {
				t.Errorf("%s demands %q, as another case does", name, c.demands)
			}
			demands[demand] = true
		}
	}
}

// A failure sends its reader to a heading of the guide.
func TestTheGuideHasAHeadingForEachGroup(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(guide)))
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, g := range groups {
		want = append(want, "### "+g.name)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "### ") {
			got = append(got, line)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("headings of the guide (-groups +guide):\n%s", d)
	}
}

func TestContentDiffersNearlyEverywhere(t *testing.T) {
	const n = 200_000
	b := make([]byte, n)
	content(7).fill(b, 3)
	if i := content(7).differs(b, 3); i != -1 {
		t.Fatalf("what was filled differs at %d", i)
	}
	for _, at := range []int{0, 1, 65_517, 65_518, 65_520, 65_521, 131_042, n - 1} {
		changed := slices.Clone(b)
		changed[at] ^= 1
		if i := content(7).differs(changed, 3); i != at {
			t.Errorf("a change at %d is found at %d", at, i)
		}
	}
	for name, other := range map[string]struct {
		c content
		i uint64
	}{"the next text": {8, 3}, "one byte later": {7, 4}, "one page later": {7, 4099}, "64 KiB later": {7, 3 + 65536}} {
		same := 0
		var x [n]byte
		other.c.fill(x[:], other.i)
		for i := range x {
			if x[i] == b[i] {
				same++
			}
		}
		if same > n/100 {
			t.Errorf("%s is the same at %d of %d bytes", name, same, n)
		}
	}
}

func TestStainsAreFound(t *testing.T) {
	b := make([]byte, 100)
	paint(b, poison)
	if i := stained(b, poison); i != -1 {
		t.Errorf("a stain at %d", i)
	}
	b[99]++
	if i := stained(b, poison); i != 99 {
		t.Errorf("a stain at 99 is found at %d", i)
	}
}
