package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startTarget serves n bytes on a free port until the test ends.
func startTarget(t *testing.T, n int) (*target, string) {
	t.Helper()
	mem, err := mapMemory(n)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	served := newTarget(mem)
	ended := make(chan error, 1)
	go func() { ended <- served.serve(listener) }()
	t.Cleanup(func() {
		listener.Close()
		if err := <-ended; err != nil {
			t.Errorf("target: %v", err)
		}
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	return served, listener.Addr().String()
}

func fill(b []byte, seed byte) {
	for i := range b {
		b[i] = seed + byte(i) + byte(i>>8)*31 + byte(i>>16)*17
	}
}

func TestEveryWindowArrives(t *testing.T) {
	tests := []struct {
		name                  string
		block, batch, threads int
	}{
		{"one byte", 1, 1, 1},
		{"small one at a time", 4096, 1, 1},
		{"small batch", 4096, 64, 2},
		{"more requests than one vector holds", 100, maxBatch, 1},
		{"larger than the bounce buffer", 300_001, 3, 2},
		{"larger than the socket buffers", 16 << 20, 2, 1},
	}
	for _, tt := range tests {
		for _, write := range []bool{true, false} {
			for _, turns := range []bool{true, false} {
				l := load{
					block: tt.block, batch: tt.batch, threads: tt.threads,
					write: write, turns: turns, duration: time.Millisecond,
				}
				name := tt.name + map[bool]string{true: ", write", false: ", read"}[write] +
					map[bool]string{true: ", in turns", false: ", both ways at once"}[turns]
				t.Run(name, func(t *testing.T) { checkWindow(t, l) })
			}
		}
	}
}

func checkWindow(t *testing.T, l load) {
	size := l.window() * l.threads
	served, addr := startTarget(t, size+4096)
	l.addr, l.base = addr, served.base
	local := make([]byte, size)
	if l.write {
		fill(local, 1)
	} else {
		fill(served.mem, 2)
	}
	r, err := l.run(t.Context(), local)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(local, served.mem[:size]) {
		t.Error("the two windows differ")
	}
	if l.write && !bytes.Equal(served.mem[size:], make([]byte, 4096)) {
		t.Error("a write went past the window")
	}
	if r.Bytes != r.Requests*int64(l.block) || r.Requests < int64(l.batch*l.threads) {
		t.Errorf("%d requests, %d bytes counted for at least %d × %d", r.Requests, r.Bytes, l.batch*l.threads, l.block)
	}
	if r.BytesPerSecond <= 0 || r.RequestsPerSecond <= 0 || r.CPUSeconds < 0 {
		t.Errorf("rates must be positive: %+v", r)
	}
}

// dialRaw is a connection on which a test speaks the protocol by itself.
func dialRaw(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

func request(h header, payload []byte) []byte {
	b := make([]byte, headerBytes)
	h.put(b)
	return append(b, payload...)
}

func TestPipelinedRequestsTakeEffectInOrder(t *testing.T) {
	served, addr := startTarget(t, 1<<20)
	c := dialRaw(t, addr)
	first, second := make([]byte, 1000), make([]byte, 1000)
	fill(first, 10)
	fill(second, 20)
	read := header{size: 1000, addr: served.base + 7, op: opRead}
	write := header{size: 1000, addr: served.base + 7, op: opWrite}
	var sent bytes.Buffer
	for _, piece := range [][]byte{
		request(read, nil), request(write, first), request(read, nil), request(write, second), request(read, nil),
	} {
		sent.Write(piece)
	}
	if _, err := c.Write(sent.Bytes()); err != nil {
		t.Fatal(err)
	}
	ok := statusFrame(statusOK)
	want := bytes.Join([][]byte{ok, make([]byte, 1000), ok, ok, first, ok, ok, second}, nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestTargetRejectsWhatIsOutsideItsMemory(t *testing.T) {
	const size = 1 << 16
	served, addr := startTarget(t, size)
	tests := []struct {
		name string
		h    header
	}{
		{"before", header{size: 8, addr: served.base - 1, op: opRead}},
		{"across the end", header{size: 8, addr: served.base + size - 7, op: opWrite}},
		{"at the end", header{size: 1, addr: served.base + size, op: opRead}},
		{"larger than the memory", header{size: size + 1, addr: served.base, op: opRead}},
		{"wrapping around", header{size: ^uint64(0), addr: served.base, op: opWrite}},
		{"highest address", header{size: 1, addr: ^uint64(0), op: opWrite}},
		{"no bytes", header{size: 0, addr: served.base, op: opRead}},
		{"version 1", header{size: 8, addr: served.base, op: 1}},
		{"unknown opcode", header{size: 8, addr: served.base, op: 0x82}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := dialRaw(t, addr)
			good := request(header{size: 4, addr: served.base, op: opWrite}, []byte("good"))
			if _, err := c.Write(append(good, request(tt.h, nil)...)); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			want := append(statusFrame(statusOK), statusFrame(statusRejected)...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInitiatorSaysWhatToCheckWhenItIsRejected(t *testing.T) {
	served, addr := startTarget(t, 1<<16)
	for _, write := range []bool{true, false} {
		for _, turns := range []bool{true, false} {
			l := load{
				addr: addr, base: served.base + 1<<16, write: write, turns: turns,
				block: 1 << 20, batch: 8, threads: 2, duration: time.Minute,
			}
			_, err := l.run(t.Context(), make([]byte, l.window()*l.threads))
			if err == nil || !strings.Contains(err.Error(), "--base") {
				t.Errorf("write %v, turns %v: error %v, want one that names --base", write, turns, err)
			}
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	served, addr := startTarget(t, 1<<16)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	l := load{addr: addr, base: served.base, write: true, block: 100, batch: 4, threads: 2, duration: time.Hour}
	if _, err := l.run(ctx, make([]byte, 800)); err == nil {
		t.Error("no error from a run whose context ended")
	}
}

func TestTargetSaysWhereItIsAndEndsWithItsInput(t *testing.T) {
	in, closeInput := pipe(t)
	out, lines := pipe(t)
	ended := make(chan error, 1)
	go func() {
		ended <- dispatch(t.Context(), []string{"target", "--memory", "65536"}, in, lines)
		lines.Close()
	}()
	decoder := json.NewDecoder(out)
	var ready struct {
		Addr   string
		Base   uint64
		Length int
	}
	if err := decoder.Decode(&ready); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(ready.Addr, "127.0.0.1:") || ready.Base == 0 || ready.Length != 65536 {
		t.Errorf("ready line: %+v", ready)
	}
	c := dialRaw(t, ready.Addr) // an idle connection must not keep the target alive
	closeInput.Close()
	var last struct {
		CPUSeconds *float64 `json:"cpu_seconds"`
	}
	if err := decoder.Decode(&last); err != nil {
		t.Fatal(err)
	}
	if last.CPUSeconds == nil || *last.CPUSeconds <= 0 {
		t.Errorf("last line has no processor time: %v", last.CPUSeconds)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("idle connection: %v, want EOF", err)
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func TestTargetOutlivesAnInputThatIsNoPipe(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	cancelAtEnd(null, func() { t.Error("the end of /dev/null ended the target") })
}

func TestWrongUsageIsExplained(t *testing.T) {
	init := func(more ...string) []string {
		return append([]string{"init", "--addr", "127.0.0.1:1", "--base", "4096"}, more...)
	}
	tests := []struct {
		args []string
		want string
	}{
		{nil, "name a role"},
		{[]string{"serve"}, `no role "serve"`},
		{[]string{"target", "--memory", "0"}, "--memory 0"},
		{[]string{"target", "--addr", "nowhere"}, "--addr"},
		{[]string{"target", "extra"}, `"extra" is not a flag`},
		{[]string{"init", "--base", "4096"}, "--addr is missing"},
		{[]string{"init", "--addr", "127.0.0.1:1"}, "--base is missing"},
		{[]string{"init", "--bas", "1"}, "-bas"},
		{init("--op", "copy"), `--op "copy"`},
		{init("--batch", "0"), "--batch 0"},
		{init("--batch", "1025"), "--batch 1025"},
		{init("--threads", "0"), "--threads 0"},
		{init("--threads", "257"), "--threads 257"},
		{init("--block", "0"), "--block 0"},
		{init("--block", "268435457", "--batch", "16"), "--block 268435457"},
		{init("--duration", "0s"), "--duration 0s"},
		{init("--duration", "2h"), "--duration 2h"},
	}
	for _, tt := range tests {
		err := dispatch(t.Context(), tt.args, os.Stdin, io.Discard)
		if !errors.Is(err, errUsage) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want wrong usage with %q", tt.args, err, tt.want)
		}
	}
	if err := dispatch(t.Context(), []string{"init", "--help"}, os.Stdin, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}

func TestResultCarriesWhatItsReadersExpect(t *testing.T) {
	l := load{write: true, block: 1000, batch: 4, threads: 2}
	b, err := json.Marshal(l.result([]int64{3, 2}, 0.5, 0.25))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"op":"write","block_bytes":1000,"batch":4,"threads":2,"requests":20,"bytes":20000,"seconds":0.5,` +
		`"bytes_per_second":40000,"requests_per_second":40,"cpu_seconds":0.25}`
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestAdvanceKeepsExactlyTheRest(t *testing.T) {
	b := make([]byte, 10)
	for _, tt := range []struct{ n, entries int }{{0, 3}, {1, 3}, {3, 2}, {4, 1}, {9, 1}, {10, 0}} {
		left := advance([]unix.Iovec{entry(b[:3]), entry(b[3:4]), entry(b[4:])}, tt.n)
		if len(left) != tt.entries {
			t.Errorf("after %d bytes: %d entries, want %d", tt.n, len(left), tt.entries)
		}
		next := tt.n
		for _, v := range left {
			if v.Base != &b[next] {
				t.Errorf("after %d bytes: an entry does not continue at byte %d", tt.n, next)
			}
			next += int(v.Len)
		}
		if len(left) > 0 && next != len(b) {
			t.Errorf("after %d bytes: the vector ends at byte %d, want %d", tt.n, next, len(b))
		}
	}
}
