package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// feed decodes lines and returns the packages that ended, then those that never did.
func feed(t *testing.T, lines string) []*packageResult {
	t.Helper()
	tl := newTally()
	var rs []*packageResult
	err := decodeEvents(strings.NewReader(lines), func(e event) {
		if r := tl.add(e); r != nil {
			rs = append(rs, r)
		}
	}, func(raw string) { t.Errorf("not an event: %q", raw) })
	if err != nil {
		t.Fatal(err)
	}
	return append(rs, tl.abandon()...)
}

func TestTallyCountsEachTestOnce(t *testing.T) {
	tests := []struct {
		name   string
		events string
		want   counts
		failed []string // names of the failures
		skips  []skip
	}{{
		name: "plain tests",
		events: `
			{"Action":"run","Package":"m/a","Test":"TestA"}
			{"Action":"pass","Package":"m/a","Test":"TestA"}
			{"Action":"run","Package":"m/a","Test":"TestB"}
			{"Action":"fail","Package":"m/a","Test":"TestB"}
			{"Action":"fail","Package":"m/a"}`,
		want:   counts{passed: 1, failed: 1},
		failed: []string{"a TestB"},
	}, {
		name: "a test with subtests counts through them",
		events: `
			{"Action":"run","Package":"m/a","Test":"TestA"}
			{"Action":"run","Package":"m/a","Test":"TestA/x"}
			{"Action":"run","Package":"m/a","Test":"TestA/x/with/slashes"}
			{"Action":"pass","Package":"m/a","Test":"TestA/x/with/slashes"}
			{"Action":"pass","Package":"m/a","Test":"TestA/x"}
			{"Action":"run","Package":"m/a","Test":"TestA/y"}
			{"Action":"fail","Package":"m/a","Test":"TestA/y"}
			{"Action":"fail","Package":"m/a","Test":"TestA"}
			{"Action":"fail","Package":"m/a"}`,
		want:   counts{passed: 1, failed: 1},
		failed: []string{"a TestA/y"},
	}, {
		name: "a test that fails after its subtests passed",
		events: `
			{"Action":"run","Package":"m/a","Test":"TestA"}
			{"Action":"run","Package":"m/a","Test":"TestA/x"}
			{"Action":"pass","Package":"m/a","Test":"TestA/x"}
			{"Action":"fail","Package":"m/a","Test":"TestA"}
			{"Action":"fail","Package":"m/a"}`,
		want:   counts{passed: 1, failed: 1},
		failed: []string{"a TestA"},
	}, {
		name: "skips keep the last message as their reason",
		events: `
			{"Action":"run","Package":"m/a","Test":"TestA"}
			{"Action":"output","Package":"m/a","Test":"TestA","Output":"=== RUN   TestA\n"}
			{"Action":"output","Package":"m/a","Test":"TestA","Output":"    a_test.go:4: looking\n"}
			{"Action":"output","Package":"m/a","Test":"TestA","Output":"    a_test.go:5: no device: eth9\n"}
			{"Action":"output","Package":"m/a","Test":"TestA","Output":"        plug one in\n"}
			{"Action":"output","Package":"m/a","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
			{"Action":"skip","Package":"m/a","Test":"TestA"}
			{"Action":"run","Package":"m/a","Test":"TestB"}
			{"Action":"skip","Package":"m/a","Test":"TestB"}
			{"Action":"pass","Package":"m/a"}`,
		want:  counts{skipped: 2},
		skips: []skip{{"m/a.TestA", "no device: eth9 plug one in"}, {"m/a.TestB", "no reason given"}},
	}, {
		name: "the process exits in the middle of a test",
		events: `
			{"Action":"run","Package":"m/a","Test":"TestA"}
			{"Action":"fail","Package":"m/a"}`,
		want:   counts{failed: 1},
		failed: []string{"a TestA"},
	}, {
		name: "a failure outside the tests",
		events: `
			{"Action":"run","Package":"m/a","Test":"TestA"}
			{"Action":"pass","Package":"m/a","Test":"TestA"}
			{"Action":"output","Package":"m/a","Output":"goleak: found unexpected goroutines\n"}
			{"Action":"fail","Package":"m/a"}`,
		want:   counts{passed: 1, failed: 1},
		failed: []string{"a (outside its tests)"},
	}, {
		name: "a package that does not build",
		events: `
			{"Action":"build-output","ImportPath":"m/a [m/a.test]","Output":"a.go:1: undefined: x\n"}
			{"Action":"build-fail","ImportPath":"m/a [m/a.test]"}
			{"Action":"fail","Package":"m/a","FailedBuild":"m/a [m/a.test]"}`,
		want:   counts{failed: 1},
		failed: []string{"a (outside its tests)"},
	}, {
		name:   "a package without tests",
		events: `{"Action":"skip","Package":"m/a"}`,
	}, {
		name: "the go command is killed",
		events: `
			{"Action":"start","Package":"m/a"}
			{"Action":"run","Package":"m/a","Test":"TestA"}`,
		want:   counts{failed: 1},
		failed: []string{"a TestA"},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rs := feed(t, strings.TrimSpace(tt.events))
			if len(rs) != 1 {
				t.Fatalf("%d packages ended, want 1", len(rs))
			}
			if rs[0].counts != tt.want {
				t.Errorf("counts are %v, want %v", rs[0].counts, tt.want)
			}
			var failed []string
			for _, f := range rs[0].failures {
				failed = append(failed, f.name("m"))
			}
			if d := cmp.Diff(tt.failed, failed); d != "" {
				t.Errorf("failures (-want +have):\n%s", d)
			}
			if d := cmp.Diff(tt.skips, rs[0].skips, cmp.AllowUnexported(skip{})); d != "" {
				t.Errorf("skips (-want +have):\n%s", d)
			}
		})
	}
}

func TestTallyKeepsWhatFailuresPrinted(t *testing.T) {
	rs := feed(t, strings.TrimSpace(`
		{"Action":"build-output","ImportPath":"m/b","Output":"b.go:1: undefined: x\n"}
		{"Action":"fail","Package":"m/b","FailedBuild":"m/b"}
		{"Action":"output","Package":"m/a","Output":"-test.shuffle 42\n"}
		{"Action":"run","Package":"m/a","Test":"TestA"}
		{"Action":"output","Package":"m/a","Test":"TestA","Output":"=== RUN   TestA\n"}
		{"Action":"output","Package":"m/a","Test":"TestA","Output":"    a_test.go:4: got 1, want 2\n"}
		{"Action":"fail","Package":"m/a","Test":"TestA"}
		{"Action":"output","Package":"m/a","Output":"coverage: 81.5% of statements\n"}
		{"Action":"fail","Package":"m/a"}`))
	if got, want := rs[0].failures[0].text, "b.go:1: undefined: x\n"; got != want {
		t.Errorf("a failed build shows %q, want %q", got, want)
	}
	f := rs[1].failures[0]
	if got, want := f.text, "    a_test.go:4: got 1, want 2\n"; got != want {
		t.Errorf("a failed test shows %q, want %q", got, want)
	}
	if f.seed != "42" || rs[1].coverage != "81.5" {
		t.Errorf("seed %q and coverage %q, want 42 and 81.5", f.seed, rs[1].coverage)
	}
}

func TestRerunCommandIsWhatAShellTakes(t *testing.T) {
	f := failure{pkg: "m/wire/a", test: "TestA/size=1+2/it's", seed: "7"}
	want := `go test -count=1 -race -shuffle=7 -run '^TestA$/^size=1\+2$/^it.s$' ./wire/a`
	if got := rerun(f, "m", []string{"-race"}); got != want {
		t.Errorf("rerun is\n%s\nwant\n%s", got, want)
	}
	if got, want := rerun(failure{pkg: "m"}, "m", nil), "go test -count=1 ./."; got != want {
		t.Errorf("rerun of the root package is %q, want %q", got, want)
	}
}

func TestDecodeEventsPassesOtherLinesThrough(t *testing.T) {
	var raw []string
	n := 0
	err := decodeEvents(strings.NewReader("plain text\n{\"Action\":\"start\"}\n{}\nno newline"),
		func(event) { n++ }, func(s string) { raw = append(raw, s) })
	if err != nil || n != 1 {
		t.Errorf("%d events and error %v, want 1 and none", n, err)
	}
	if d := cmp.Diff([]string{"plain text\n", "{}\n", "no newline"}, raw); d != "" {
		t.Errorf("other lines (-want +have):\n%s", d)
	}
}

func TestPrintSkipsGroupsByReason(t *testing.T) {
	var b strings.Builder
	printSkips(&b, []skip{{"m/b.TestX", "no gcc"}, {"m.TestRoot", "no net"}, {"m/a.TestY", "no gcc"}}, "m")
	want := "\nSkipped, and why:\n  no gcc\n      a.TestY\n      b.TestX\n  no net\n      TestRoot\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("list (-want +have):\n%s", d)
	}
}
