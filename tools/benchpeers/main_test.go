package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeMoonpath answers as moonpath's tool does, without moving anything.
const fakeMoonpath = `#!/bin/sh
case $1 in
target)
	echo '{"segment":"127.0.0.1:15000","pid":1,"buffers":[],"transports":["tcp"]}'
	echo $$ >pid
	exec sleep 600 ;;
bench)
	echo "$@" >>asked
	echo '{"requests":1000,"bytes":4096000,"seconds":0.5,"latency_us":{"p50":50,"p99":400},"errors":0}' ;;
esac
`

// inFakeRoot makes a folder that looks like the root of the repository, with the tool as a script, and enters it.
func inFakeRoot(t *testing.T, script string) {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "tools", "yardstick"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "moonpath"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
}

func TestRunWritesWhatItMeasured(t *testing.T) {
	inFakeRoot(t, fakeMoonpath)
	o, err := parseOptions([]string{
		"--rounds", "3", "--duration", "10ms", "--blocks", "4KiB", "--only", "^tcp$|beside|memcpy", "--moonpath", "./moonpath",
	})
	if err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	if err := run(t.Context(), o, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}

	text, err := os.ReadFile(jsonPath)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Rows []struct {
			Pair, Op   string
			Block      int `json:"block_bytes"`
			Batch      int
			Submitters int
			Rounds     int
			Bytes      float64 `json:"bytes_per_second"`
			Requests   float64 `json:"requests_per_second"`
			CPU        float64 `json:"cpu_seconds_per_gb"`
			P99        float64 `json:"latency_p99_us"`
		}
		Gates []struct{ Gate, Verdict string }
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Rows) != 12+1+1 {
		t.Errorf("%d rows, want 12 of tcp, one beside bulk, one of memcpy:\n%s", len(got.Rows), text)
	}
	for _, r := range got.Rows {
		if r.Pair == memcpyCold {
			continue
		}
		if r.Bytes != 8192000 || r.Requests != 2000 || r.Rounds != 3 || r.P99 != 400 || r.CPU < 0 || r.Block != 4096 {
			t.Errorf("row %+v does not say what the tool said", r)
		}
	}
	held := 0
	for _, g := range got.Gates {
		if g.Verdict == string(holds) {
			held++
		}
	}
	if held != 1 { // p99 of 400 µs beside bulk, p50 of 50 µs alone
		t.Errorf("%d gates hold, want the one whose rows are there: %+v", held, got.Gates)
	}

	if _, err := os.Stat(pagePath); err == nil {
		t.Error("a run that left pairs out replaced the page of a whole run")
	}
	written, err := os.ReadFile(partPagePath)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"read 4KiB × 64, 4 at once", "2.00 (2.00–2.00)", "| holds", "Not measured:"} {
		if !strings.Contains(string(written), want) {
			t.Errorf("the page lacks %q:\n%s", want, written)
		}
	}
	if !strings.Contains(out.String(), "1 gates hold, 0 missed, 15 not measured") {
		t.Errorf("closing line: %s", out.String())
	}
	if !strings.Contains(progress.String(), "round 3 of 3, cell 13 of 13") {
		t.Errorf("progress: %s", progress.String())
	}
	checkAsked(t)
	checkGone(t, "pid")
}

// checkAsked holds what the tool was asked against its flags.
func checkAsked(t *testing.T) {
	t.Helper()
	asked, err := os.ReadFile("asked")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(asked)), "\n")
	want := "bench --segment 127.0.0.1:15000 --op read --block 4KiB --batch 1 --threads 1 --duration 10ms --warm-up 0 --transport tcp --json --beside-bulk"
	n := 0
	for _, line := range lines {
		if line == want {
			n++
		}
	}
	if n != 3 || len(lines) != 1+3*12+3 { // the first is the warm-up
		t.Errorf("asked %d times, %d of them %q:\n%s", len(lines), n, want, asked)
	}
}

func TestRunNamesWhatItSkips(t *testing.T) {
	inFakeRoot(t, "#!/bin/sh\necho 'moonpath: no free port; set port.max' >&2\nexit 4\n")
	o, err := parseOptions([]string{"--quick", "--duration", "10ms", "--only", "^tcp$|memcpy", "--moonpath", "./moonpath"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), o, &out, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if want := "* tcp: moonpath ended before it was ready: moonpath: no free port; set port.max"; !strings.Contains(out.String(), want) {
		t.Errorf("output lacks %q:\n%s", want, out.String())
	}

	o.only, o.moonpath = mustOnly(t, "^tcp$"), "./absent"
	err = run(t.Context(), o, &bytes.Buffer{}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "nothing could be measured") {
		t.Errorf("error %v from a run without a single figure", err)
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	inFakeRoot(t, strings.Replace(fakeMoonpath, "bench)", "bench)\n\t[ -e asked ] && echo $$ >bench-pid && : >hangs && exec sleep 600", 1))
	o, err := parseOptions([]string{"--only", "^tcp$", "--moonpath", "./moonpath"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := contextAfterFile(t, "hangs")
	defer cancel()
	start := time.Now()
	if err := run(ctx, o, &bytes.Buffer{}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "nothing written") {
		t.Errorf("error %v, want one that says that nothing was written", err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v to stop", took)
	}
	checkGone(t, "pid")
	checkGone(t, "bench-pid")
	if _, err := os.Stat(jsonPath); err == nil {
		t.Error("an interrupted run wrote results")
	}
}

func TestOptions(t *testing.T) {
	tests := []struct {
		args     []string
		rounds   int
		cxx      int
		duration time.Duration
		blocks   []int
		whole    bool
	}{
		{nil, 3, 5, time.Second, []int{4096, 4096, 65536, 1 << 20, 16 << 20}, true},
		{[]string{"--rounds", "7"}, 7, 7, time.Second, []int{4096, 4096, 65536, 1 << 20, 16 << 20}, true},
		{[]string{"--rounds", "2"}, 2, 2, time.Second, []int{4096, 4096, 65536, 1 << 20, 16 << 20}, false},
		{[]string{"--quick"}, 1, 1, quickDuration, []int{4096, 65536}, false},
		{[]string{"--quick", "--duration", "2s", "--rounds", "3"}, 3, 5, 2 * time.Second, []int{4096, 65536}, false},
		{[]string{"--blocks", "16MiB,1048576"}, 3, 5, time.Second, []int{16 << 20, 1 << 20}, false},
		{[]string{"--only", "tcp"}, 3, 5, time.Second, []int{4096, 4096, 65536, 1 << 20, 16 << 20}, false},
	}
	for _, tt := range tests {
		o, err := parseOptions(tt.args)
		if err != nil {
			t.Errorf("%q: %v", tt.args, err)
			continue
		}
		if o.rounds != tt.rounds || o.cxxRounds() != tt.cxx || o.duration != tt.duration || o.whole() != tt.whole {
			t.Errorf("%q: rounds %d, %d, duration %v, whole %v", tt.args, o.rounds, o.cxxRounds(), o.duration, o.whole())
		}
		if diff := cmp.Diff(tt.blocks, o.blocks); diff != "" {
			t.Errorf("%q: blocks (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestWrongUsageIsExplained(t *testing.T) {
	for arg, want := range map[string]string{
		"--rounds=0":         "--rounds 0",
		"--rounds=101":       "--rounds 101",
		"--duration=1ms":     "--duration 1ms",
		"--duration=2m":      "--duration 2m",
		"--only=(":           "--only",
		"--blocks=1K":        "--blocks",
		"--blocks=8KiB":      "8KiB is none of",
		"--blocks=4KiB,,":    "--blocks",
		"--round=1":          "-round",
		"64KiB":              `"64KiB" is not a flag`,
		"--duration=forever": "-duration",
	} {
		if _, err := parseOptions([]string{arg}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", arg, err, want)
		}
	}
	o, err := parseOptions([]string{"--only", "tpc"})
	if err != nil {
		t.Fatal(err)
	}
	inFakeRoot(t, "")
	if err := run(t.Context(), o, &bytes.Buffer{}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "no pair has such a name") {
		t.Errorf("error %v for a pattern that matches nothing", err)
	}
	t.Chdir(t.TempDir())
	if err := run(t.Context(), o, &bytes.Buffer{}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "root of the repository") {
		t.Errorf("error %v in a foreign folder", err)
	}
}
