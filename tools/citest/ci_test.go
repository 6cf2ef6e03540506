package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// runCI runs a copy of .ci/run with a make that behaves as the script says; $1 is the target.
func runCI(t *testing.T, fakeMake string) (output string, status int) {
	t.Helper()
	script, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{".ci/run": string(script), "bin/make": "#!/bin/sh\n" + fakeMake} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-c", `PATH="$PWD/bin:$PATH" exec .ci/run`)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(out), exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

func TestCIAddsUpAllSteps(t *testing.T) {
	const skipped = `printf 'x\n\nSkipped, and why:\n  %s\n      %s\n\n%s\n' `
	tests := []struct {
		name, make string
		status     int
		last       string
		shows      []string
	}{{
		name:   "everything passes",
		make:   `echo "10 passed, 0 failed, 2 skipped"`,
		status: 0,
		last:   "33 passed, 0 failed, 6 skipped", // three steps that count tests, three that count as one
		shows:  []string{`(?s)==== test: make test.*==== lint: .*==== test-race: .*==== test-alloc: .*==== fuzz: make fuzz TIME=5s`, `  lint: \d+ s\n`},
	}, {
		name: "steps go on after a failure",
		make: `case $1 in
			test) echo "10 passed, 1 failed, 0 skipped"; exit 2;;
			lint) exit 2;;
			*) echo "5 passed, 0 failed, 0 skipped";; esac`,
		status: 1,
		last:   "22 passed, 2 failed, 0 skipped",
		shows:  []string{`test: \d+ s, failed`, `lint: \d+ s, failed`, `fuzz: \d+ s\n`},
	}, {
		name: "a step that fails without counting a failure",
		make: `case $1 in
			test-race) exit 2;;
			test-alloc) echo "3 passed, 0 failed, 0 skipped"; exit 2;;
			*) echo "1 passed, 0 failed, 0 skipped";; esac`,
		status: 1,
		last:   "7 passed, 2 failed, 0 skipped",
	}, {
		name: "skips of all steps end in one list",
		make: `case $1 in
			test) ` + skipped + `"no pip" interop.TestA "1 passed, 0 failed, 1 skipped";;
			test-race) ` + skipped + `"no gcc" everything "0 passed, 0 failed, 1 skipped";;
			*) echo "1 passed, 0 failed, 0 skipped";; esac`,
		status: 0,
		last:   "5 passed, 0 failed, 2 skipped",
		shows:  []string{`Skipped in all steps, and why:\n  no pip\n      interop.TestA\n  no gcc\n      everything\n`},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, status := runCI(t, tt.make)
			lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
			if last := lines[len(lines)-1]; last != tt.last || status != tt.status {
				t.Errorf("exit status %d and last line %q, want %d and %q", status, last, tt.status, tt.last)
			}
			for _, re := range tt.shows {
				if !regexp.MustCompile(re).MatchString(out) {
					t.Errorf("nothing matches %q", re)
				}
			}
			if t.Failed() {
				t.Logf("output:\n%s", out)
			}
		})
	}
}
