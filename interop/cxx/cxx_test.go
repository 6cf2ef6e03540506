package cxx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/moonpath-io/moonpath/interop/pattern"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mib = 1 << 20

// alloc is Peer.Alloc for tests that cannot go on without the memory.
func alloc(t *testing.T, p *Peer, size uint64) uint64 {
	t.Helper()
	addr, err := p.Alloc(size)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func fill(t *testing.T, p *Peer, addr, length, seed uint64) {
	t.Helper()
	if err := p.Fill(addr, length, seed); err != nil {
		t.Fatal(err)
	}
}

func wantPattern(t *testing.T, p *Peer, addr uint64, length int, seed uint64) {
	t.Helper()
	sum, err := p.Checksum(addr, uint64(length))
	if err != nil {
		t.Fatal(err)
	}
	if sum != pattern.Checksum(pattern.Bytes(seed, length)) {
		t.Errorf("%d bytes at %#x of %s are not pattern %d", length, addr, p.Name, seed)
	}
}

func TestWriteReadNotifyProbeBetweenTwoEngines(t *testing.T) {
	target, initiator := Start(t), Start(t)
	remote, local := alloc(t, target, 2*mib), alloc(t, initiator, 2*mib)

	fill(t, initiator, local, mib, 11)
	written := &Notify{Name: "written", Text: "ünï"}
	if err := initiator.TransferNotify(Write, target.Name, local, remote+7, mib, written); err != nil {
		t.Fatal(err)
	}
	wantPattern(t, target, remote+7, mib, 11)

	fill(t, target, remote, mib, 12)
	if err := initiator.Transfer(Read, target.Name, local+mib, remote, mib); err != nil {
		t.Fatal(err)
	}
	wantPattern(t, initiator, local+mib, mib, 12)

	got, err := target.Notifies()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Notify{*written}, got); diff != "" {
		t.Errorf("notifies (-want +got):\n%s", diff)
	}
	if err := initiator.Probe(target.Name); err != nil {
		t.Error(err)
	}
	if first, err := initiator.FirstBuffer(target.Name); err != nil || first != remote {
		t.Errorf("FirstBuffer = %#x, %v, want %#x", first, err, remote)
	}
}

func TestBatches(t *testing.T) {
	target, initiator := Start(t), Start(t)
	const members, each = 64, 4096
	remote, local := alloc(t, target, members*each), alloc(t, initiator, members*each)
	fill(t, initiator, local, members*each, 21)
	b := Batch{Op: Write, Target: target.Name, Notify: &Notify{Name: "batch", Text: "done"}}
	for i := range uint64(members) {
		b.Locals = append(b.Locals, local+i*each)
		b.Remotes = append(b.Remotes, remote+i*each)
		b.Lengths = append(b.Lengths, each)
	}
	if err := initiator.BatchTransfer(b); err != nil {
		t.Fatal(err)
	}
	wantPattern(t, target, remote, members*each, 21)
	if got, err := target.Notifies(); err != nil || len(got) != 1 || got[0] != *b.Notify {
		t.Errorf("Notifies = %v, %v, want one, %v", got, err, *b.Notify)
	}

	fill(t, target, remote, members*each, 22)
	b.Op = Read
	var ids []uint64
	for range 3 {
		id, err := initiator.SubmitBatch(b)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := initiator.WaitBatches(ids...); err != nil {
		t.Fatal(err)
	}
	wantPattern(t, initiator, local, members*each, 22)
}

func TestFourSubmittersAtOnce(t *testing.T) {
	target, initiator := Start(t), Start(t)
	const submitters, each = 4, 64 << 10
	remote, local := alloc(t, target, submitters*each), alloc(t, initiator, submitters*each)
	var batches []Batch
	for i := range uint64(submitters) {
		fill(t, initiator, local+i*each, each, 30+i)
		batches = append(batches, Batch{
			Op: Write, Target: target.Name,
			Locals: []uint64{local + i*each}, Remotes: []uint64{remote + i*each}, Lengths: []uint64{each},
		})
	}
	if err := initiator.Parallel(20, batches...); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(submitters) {
		wantPattern(t, target, remote+i*each, each, 30+i)
	}
	batches[2].Remotes[0] = 1
	var failed *CallFailed
	if err := initiator.Parallel(1, batches...); !errors.As(err, &failed) || failed.Code != -1 {
		t.Errorf("with a bad address among four: %v, want code -1", err)
	}
}

func TestMethodsRunSideBySide(t *testing.T) {
	target, initiator := Start(t), Start(t)
	remote, local := alloc(t, target, 8*mib), alloc(t, initiator, 8*mib)
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for i := range uint64(8) {
		wg.Go(func() {
			if err := initiator.Fill(local+i*mib, mib, i); err != nil {
				errs <- err
				return
			}
			errs <- initiator.Transfer(Write, target.Name, local+i*mib, remote+i*mib, mib)
		})
	}
	wg.Wait()
	for i := range uint64(8) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
		wantPattern(t, target, remote+i*mib, mib, i)
	}
}

func TestMemoryIsReadAndWrittenAsBytes(t *testing.T) {
	p := Start(t)
	addr := alloc(t, p, 100)
	if err := p.WriteMem(addr+3, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if got, err := p.ReadMem(addr+2, 7); err != nil || !bytes.Equal(got, []byte("\x00hello\x00")) {
		t.Errorf("ReadMem = %q, %v", got, err)
	}
	file := filepath.Join(t.TempDir(), "payload")
	if err := os.WriteFile(file, pattern.Bytes(5, 90), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := p.LoadFile(addr, 100, file); err != nil || n != 90 {
		t.Fatalf("LoadFile = %d, %v, want 90", n, err)
	}
	wantPattern(t, p, addr, 90, 5)
	var raised *Raised
	if _, err := p.LoadFile(addr, 89, file); !errors.As(err, &raised) || !strings.Contains(raised.Text, "longer than 89") {
		t.Errorf("LoadFile over the limit: %v", err)
	}
}

func TestEngineErrorsAreReported(t *testing.T) {
	target, initiator := Start(t), Start(t)
	remote, local := alloc(t, target, 4096), alloc(t, initiator, 4096)
	for name, c := range map[string]struct {
		call func() error
		code int
	}{
		"overlapping registration": {func() error { return initiator.Register(local+8, 8) }, -7},
		"unregister of nothing":    {func() error { return initiator.Unregister(local + 8) }, -3},
		"address outside":          {func() error { return initiator.Transfer(Write, target.Name, local, remote+4096, 1) }, -1},
		"nobody there":             {func() error { return initiator.Transfer(Write, "127.0.0.1:1", local, remote, 1) }, -1},
		"probe of nobody":          {func() error { return initiator.Probe("127.0.0.1:1") }, -102},
		"submit to nobody":         {func() error { _, err := initiator.SubmitBatch(Batch{Op: Read, Target: "127.0.0.1:1"}); return err }, 0},
		"first buffer of nobody":   {func() error { _, err := initiator.FirstBuffer("127.0.0.1:1"); return err }, 0},
		"batch of unequal lists": {func() error {
			return initiator.BatchTransfer(Batch{Op: Read, Target: target.Name, Lengths: []uint64{1}})
		}, -1},
		"registration of no length": {func() error { return initiator.Register(local+4096, 0) }, -1},
	} {
		t.Run(name, func(t *testing.T) {
			var failed *CallFailed
			if err := c.call(); !errors.As(err, &failed) || failed.Code != c.code {
				t.Errorf("%v, want code %d", err, c.code)
			}
		})
	}
	if err := initiator.WaitBatches(0); !errors.As(err, new(*Raised)) {
		t.Errorf("WaitBatches(0) = %v, want a refusal", err)
	}
}

func TestSettingsReachTheEngine(t *testing.T) {
	p := Start(t, "MC_MIN_RPC_PORT=14000", "MC_MAX_RPC_PORT=14999")
	if !strings.HasPrefix(p.Name, "127.0.0.1:14") {
		t.Errorf("name %s, want a port from 14000 to 14999", p.Name)
	}
}

func TestInheritedSettingsDoNotReachTheEngine(t *testing.T) {
	t.Setenv("MC_MIN_RPC_PORT", "14000")
	t.Setenv("MC_MAX_RPC_PORT", "14999")
	if p := Start(t); strings.HasPrefix(p.Name, "127.0.0.1:14") {
		t.Errorf("name %s comes from settings of this process", p.Name)
	}
}

func TestCrashIsAnErrorThatShowsStderr(t *testing.T) {
	p := Start(t)
	addr := alloc(t, p, 4096)
	// The guard page behind the memory: an access is a crash of the peer.
	_, err := p.ReadMem(addr, 4097)
	var gone *PeerGone
	if !errors.As(err, &gone) || !strings.Contains(gone.Reason, "segmentation fault") {
		t.Fatalf("read of a guard page: %v, want a segmentation fault", err)
	}
	if !strings.Contains(gone.Stderr, "Segmentation fault") {
		t.Errorf("stderr lacks the report of the crash:\n%s", gone.Stderr)
	}
	if err := p.Probe(p.Name); !errors.As(err, &gone) || gone.Call != "probe" {
		t.Errorf("a call after the crash: %v, want *PeerGone", err)
	}
}

func TestKillEndsCallsUnderWay(t *testing.T) {
	p := Start(t)
	// Nothing answers at a listening port that does not accept, so that the probe waits for its 60 s.
	silent := listen(t)
	result := make(chan error, 1)
	go func() { result <- p.Probe(silent.Addr().String()) }()
	conn, err := silent.Accept() // the probe is under way
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	p.Kill()
	var gone *PeerGone
	if err := <-result; !errors.As(err, &gone) || gone.Reason != "killed by the test" {
		t.Errorf("call during Kill: %v", err)
	}
}

func TestCallThatHangsMeetsItsDeadline(t *testing.T) {
	p := Start(t)
	p.process.deadline = 200 * time.Millisecond
	silent := listen(t)
	err := p.Probe(silent.Addr().String())
	var gone *PeerGone
	if !errors.As(err, &gone) || !strings.Contains(gone.Reason, "no answer to probe within 200ms") {
		t.Errorf("probe of a silent port: %v, want *PeerGone", err)
	}
}

func TestVenvScriptResults(t *testing.T) {
	for _, c := range []struct{ name, script, python, reason string }{
		{"path", "echo noise; echo /some/venv", "/some/venv/bin/python", ""},
		{"reason", "echo no network; exit 3", "", "no network"},
		{"silent failure", "exit 4", "", "exit status 4"},
		{"deadline", "sleep 60; echo late", "", "did not finish"},
	} {
		t.Run(c.name, func(t *testing.T) {
			script := filepath.Join(t.TempDir(), "venv.sh")
			if err := os.WriteFile(script, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			deadline := 10 * time.Second
			if c.name == "deadline" {
				deadline = 100 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			python, reason := runVenvScript(ctx, script)
			if python != c.python || !strings.Contains(reason, c.reason) || (reason == "") != (c.reason == "") {
				t.Errorf("python %q, reason %q, want %q, %q", python, reason, c.python, c.reason)
			}
		})
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var kept tail
	var all bytes.Buffer
	for i := range 20000 {
		line := fmt.Sprintf("line %d\n", i)
		all.WriteString(line)
		if n, err := kept.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	got := kept.String()
	if len(got) != tailSize || !strings.HasSuffix(all.String(), got) {
		t.Errorf("kept %d bytes that end in %q", len(got), got[max(0, len(got)-20):])
	}
}
