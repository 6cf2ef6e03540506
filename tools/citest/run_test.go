package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// writeModule makes a module "m" of the given files and returns its folder.
func writeModule(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module m\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const passing = "package p\n\nimport \"testing\"\n\nfunc TestPass(*testing.T) {}\n"

func TestRunOnARealModule(t *testing.T) {
	tests := []struct {
		name   string
		files  map[string]string
		args   []string
		status int
		last   string
		shows  []string // regular expressions over the whole output
	}{{
		name:   "all pass, shuffled",
		files:  map[string]string{"a/a_test.go": passing, "b/b.go": "package b\n"},
		args:   []string{"--", "-shuffle=on"},
		status: 0,
		last:   "1 passed, 0 failed, 0 skipped",
		shows:  []string{`ok   a: 1 passed`, `-    b: no test files`, `Skipped: nothing`},
	}, {
		name: "a failure, a skip, and what does not build",
		files: map[string]string{
			"a/a_test.go": passing,
			"f/f_test.go": "package f\n\nimport \"testing\"\n\nfunc TestFail(t *testing.T) { t.Error(\"got 1, want 2\") }\n\nfunc TestSkip(t *testing.T) { t.Skip(\"no device\") }\n",
			"x/x_test.go": "package x\n\nfunc x() { undefined() }\n",
			"i/i.go":      "package i\n\nimport _ \"m/missing\"\n",
		},
		status: 1,
		last:   "1 passed, 3 failed, 1 skipped",
		shows: []string{
			`(?s)--- failed: f TestFail.*got 1, want 2`, `x_test.go:3:\d+: undefined: undefined`, `missing`,
			`go test -count=1 -run '\^TestFail\$' ./f`, `(?s)Skipped, and why:\s+no device\s+f.TestSkip`,
		},
	}, {
		name:   "no test at all",
		files:  map[string]string{"b/b.go": "package b\n"},
		status: 1,
		last:   "0 passed, 1 failed, 0 skipped",
		shows:  []string{`proves nothing`},
	}, {
		name:   "a folder left out",
		files:  map[string]string{"a/a_test.go": passing, "peers/cxx/c_test.go": "package cxx\n\nbroken"},
		args:   []string{"-without=peers"},
		status: 0,
		last:   "1 passed, 0 failed, 0 skipped",
	}, {
		name: "coverage below the floor",
		files: map[string]string{
			"a/a.go":      "package a\n\nfunc Half(b bool) int {\n\tif b {\n\t\treturn 1\n\t}\n\treturn 2\n}\n",
			"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestHalf(*testing.T) { Half(true) }\n",
		},
		args:   []string{"-floor=70", "--", "-cover"},
		status: 1,
		last:   "1 passed, 1 failed, 0 skipped",
		shows:  []string{`a: its tests cover 66\.7% of its statements, the floor is 70%`},
	}, {
		name:   "a flag that go test does not know",
		files:  map[string]string{"a/a_test.go": passing},
		args:   []string{"--", "-nonsense=1"},
		status: 1,
		last:   "0 passed, 1 failed, 0 skipped",
	}, {
		name:   "a pattern that matches nothing",
		files:  map[string]string{"a/a_test.go": passing},
		args:   []string{"./nowhere/..."},
		status: 1,
		last:   "0 passed, 1 failed, 0 skipped",
		shows:  []string{`\./nowhere/: no such file or directory`},
	}, {
		name:   "everything left out",
		files:  map[string]string{"a/a_test.go": passing},
		args:   []string{"-without=a"},
		status: 1,
		last:   "0 passed, 1 failed, 0 skipped",
		shows:  []string{`no packages are left of \./\.\.\.`},
	}, {
		name: "fuzz targets, one of which fails",
		files: map[string]string{
			"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc FuzzGood(f *testing.F) { f.Fuzz(func(*testing.T, int) {}) }\n",
			"b/b_test.go": "package b\n\nimport \"testing\"\n\nfunc FuzzBad(f *testing.F) { f.Add(1); f.Fuzz(func(t *testing.T, n int) { t.Error(\"bad input\") }) }\n",
		},
		args:   []string{"fuzz", "-time=50ms"},
		status: 1,
		last:   "1 passed, 1 failed, 0 skipped",
		shows:  []string{`ok   a.FuzzGood`, `(?s)FAIL b.FuzzBad.*bad input`},
	}, {
		name:   "fuzz targets beyond the budget are named",
		files:  map[string]string{"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc FuzzGood(f *testing.F) { f.Fuzz(func(*testing.T, int) {}) }\n"},
		args:   []string{"fuzz", "-time=50ms", "-budget=1ns"},
		status: 0,
		last:   "0 passed, 0 failed, 1 skipped",
		shows:  []string{`(?s)Skipped, and why:\s+the time for all fuzz targets, 1ns, was used up\s+a.FuzzGood`},
	}, {
		name:   "no fuzz target",
		files:  map[string]string{"a/a_test.go": passing},
		args:   []string{"fuzz"},
		status: 1,
		last:   "0 passed, 1 failed, 0 skipped",
		shows:  []string{`no fuzz target`},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, errOut strings.Builder
			status := run(context.Background(), tt.args, writeModule(t, tt.files), &out, &errOut)
			if status != tt.status {
				t.Errorf("exit status %d, want %d", status, tt.status)
			}
			lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
			if last := lines[len(lines)-1]; last != tt.last {
				t.Errorf("last line %q, want %q", last, tt.last)
			}
			for _, re := range tt.shows {
				if !regexp.MustCompile(re).MatchString(out.String()) {
					t.Errorf("nothing matches %q", re)
				}
			}
			if t.Failed() {
				t.Logf("output:\n%s\nerrors:\n%s", &out, &errOut)
			}
		})
	}
}

func TestRaceWithoutACompilerIsSkippedByName(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out, errOut strings.Builder
	status := run(context.Background(), []string{"-race"}, t.TempDir(), &out, &errOut)
	if status != 0 {
		t.Errorf("exit status %d, want 0", status)
	}
	for _, want := range []string{"needs gcc", "all tests under the race detector", "0 passed, 0 failed, 1 skipped\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, &out)
		}
	}
}

func TestWrongUsageAndWrongPlace(t *testing.T) {
	for _, args := range [][]string{{"-nonsense"}, {"-time=soon"}, nil} {
		var out, errOut strings.Builder
		// The third is right, but in a folder that is no module.
		if status := run(context.Background(), args, t.TempDir(), &out, &errOut); status != 2 {
			t.Errorf("citest %v: exit status %d, want 2", args, status)
		}
		if errOut.Len() == 0 {
			t.Errorf("citest %v says nothing", args)
		}
	}
}

func TestStillShowsWhatRunsOnlyAfterSilence(t *testing.T) {
	begin := time.Unix(1000, 0)
	var out strings.Builder
	p := &progress{r: &runner{out: &out, module: "m"}, started: begin, shown: begin, busy: map[string]time.Time{}}
	p.still(begin.Add(heartbeat - time.Second))
	if out.Len() > 0 {
		t.Errorf("said too early: %q", &out)
	}
	p.still(begin.Add(heartbeat))
	p.busy["m/b"], p.busy["m/a"] = begin.Add(heartbeat), begin
	p.still(begin.Add(heartbeat + time.Second))
	p.still(begin.Add(2 * heartbeat))
	want := "        … building; 20 s in all\n        … running a (40 s), b (20 s); 40 s in all\n"
	if out.String() != want {
		t.Errorf("said\n%swant\n%s", &out, want)
	}
}
