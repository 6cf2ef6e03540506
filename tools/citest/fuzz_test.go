package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTargetsFindsThePackageOfEach(t *testing.T) {
	out := "FuzzA\nFuzzB\nok  \tm/a\t0.01s\n?   \tm/b\t[no test files]\nok  \tm/c\t0.01s\nFuzzC\nok  \tm/d\t0.01s\n"
	want := []target{{"m/a", "FuzzA"}, {"m/a", "FuzzB"}, {"m/d", "FuzzC"}}
	if d := cmp.Diff(want, parseTargets(out), cmp.AllowUnexported(target{})); d != "" {
		t.Errorf("targets (-want +have):\n%s", d)
	}
}

func TestOnlyTheDeadlineIsNoFailure(t *testing.T) {
	const (
		begin = "fuzz: elapsed: 0s, gathering baseline coverage: 1/1 completed, now fuzzing with 2 workers\n" +
			"fuzz: elapsed: 5s, execs: 1 (9/sec), new interesting: 0 (total: 1)\n--- FAIL: FuzzA (5.12s)\n"
		end = "FAIL\nexit status 1\nFAIL\tm/a\t5.117s\n"
	)
	tests := []struct {
		name, out string
		want      bool
	}{
		{"the deadline alone", begin + "    context deadline exceeded\n" + end, true},
		{"a target that says so itself", begin + "    --- FAIL: FuzzA (0.00s)\n        a_test.go:5: context deadline exceeded\n" + end, false},
		{"with a failing input", begin + "    context deadline exceeded\n    \n    Failing input written to testdata/fuzz/FuzzA/1\n" + end, false},
		{"another failure", begin + "    fuzzing process hung or terminated unexpectedly: exit status 2\n" + end, false},
		{"nothing said", end, false},
	}
	for _, tt := range tests {
		if got := onlyDeadline([]byte(tt.out)); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
