package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func buildTool(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "moonpath")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, "../../cmd/moonpath")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	return path
}

func TestShortSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds; left out by -short")
	}
	r, err := runSoak(t.Context(), soakOptions{time: 8 * time.Second, seed: 3, binary: buildTool(t), initiators: 1, workers: 2, targets: 2, pause: 2 * time.Second}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if r.Violated > 0 {
		t.Errorf("seed %d:\n%s", r.Seed, strings.Join(r.Violations, "\n"))
	}
	if r.Kills+r.Freezes == 0 || r.Tasks.Completed == 0 || r.Tasks.Canceled == 0 || r.Tasks.Failed == 0 {
		t.Errorf("not everything happened that should: %+v", r)
	}
}

// cancelAt cancels when a line of progress starts with a word.
type cancelAt struct {
	word   string
	cancel context.CancelFunc
}

func (c cancelAt) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, []byte(c.word)) {
		c.cancel()
	}
	return len(line), nil
}

func TestSoakEndsWhenItIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := time.Now()
	o := soakOptions{time: time.Hour, binary: buildTool(t), initiators: 1, workers: 1, targets: 1}
	r, err := runSoak(ctx, o, cancelAt{"engine", cancel})
	if err != nil || len(r.Left) > 0 {
		t.Errorf("%v, left: %q", err, r.Left)
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("it took %v to end", took)
	}
}

func TestTargetThatDoesNotStartIsAnError(t *testing.T) {
	_, err := runSoak(t.Context(), soakOptions{time: time.Second, binary: "/bin/false", initiators: 1, workers: 1, targets: 1}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "false ended before it served") {
		t.Errorf("%v", err)
	}
}

func TestFlatMemory(t *testing.T) {
	const m = 1 << 20
	steady := func(n int, value uint64) []uint64 {
		s := make([]uint64, n)
		for i := range s {
			s[i] = value
		}
		return s
	}
	for _, test := range []struct {
		name    string
		samples []uint64
		grows   bool
	}{
		{"flat", steady(100, 300*m), false},
		{"start", append(steady(20, 10*m), steady(80, 300*m)...), false},
		{"peak", append(append(steady(50, 300*m), 9000*m), steady(49, 300*m)...), false},
		{"leak", append(steady(60, 300*m), steady(40, 400*m)...), true},
		{"little more", append(steady(60, 300*m), steady(40, 370*m)...), false},
		{"too short to say", steady(3, m), false},
	} {
		s := memorySamples{samples: test.samples}
		if _, _, err := s.judge(); (err != nil) != test.grows {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestParse(t *testing.T) {
	for _, bad := range [][]string{{"--time", "1ms"}, {"--time", "x"}, {"what"}, {"poison", "--batches", "0"}, {"--batches", "3"}, {"poison", "--moonpath", "x"}} {
		if c, err := parse(bad, io.Discard); err == nil {
			t.Errorf("%q was taken for %+v", bad, c)
		}
	}
	c, err := parse([]string{"poison", "--time", "2m", "--seed", "5", "--json"}, io.Discard)
	if want := (command{poison: true, json: true, time: 2 * time.Minute, batches: 1_000_000, seed: 5}); err != nil || c != want {
		t.Errorf("%+v, %v; want %+v", c, err, want)
	}
	if c, err := parse(nil, io.Discard); err != nil || c.time != 10*time.Minute || c.binary != "bin/moonpath" || !c.cxx {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestResultsAreShown(t *testing.T) {
	r := result{Seed: 5, Violated: 2, Violations: []string{"it burned"}, Targets: []string{"moonpath target 0"}, Tasks: counts{Completed: 77}}
	var out bytes.Buffer
	if err := (command{}).emit(&out, r, verdict("soak", r.Violated, 3, r.Seed)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; last != "soak: 2 violations within 3 s, seed 5" {
		t.Errorf("the last line is %q", last)
	}
	for _, want := range []string{"violation: it burned", "moonpath target 0", "77"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := (command{json: true}).emit(&out, r, ""); err != nil {
		t.Fatal(err)
	}
	var back result
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back.Violations[0] != "it burned" || back.Tasks.Completed != 77 {
		t.Errorf("%v, %+v", err, back)
	}
	if v := verdict("soak", 0, 3, 5); v != "soak: all was as it should be for 3 s, seed 5" {
		t.Error(v)
	}
}
