package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/interop/cxx"
	"github.com/moonpath-io/moonpath/interop/pattern"
	"github.com/moonpath-io/moonpath/xfer"
)

// soon is how long a request may take that cannot succeed, on a busy machine.
const soon = 10 * time.Second

func within(t testing.TB, what string, limit time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > limit {
		t.Errorf("%s took %v, want at most %v", what, took, limit)
	}
}

func TestKilledCxxTargetDisturbsNobodyElse(t *testing.T) {
	const size, count = 4 * mib, 64
	victim, other := cxx.Start(t), cxx.Start(t)
	remotes := map[*cxx.Peer]uint64{victim: allocCxx(t, victim, size), other: allocCxx(t, other, size)}
	engine := openEngine(t, nil)
	requests := func(p *cxx.Peer) []moonpath.Request {
		m, id := alloc(t, engine, size), openSegment(t, engine, p.Name)
		rs := make([]moonpath.Request, count)
		for i := range rs {
			off := uint64(i) * size / count
			rs[i] = moonpath.Request{Op: moonpath.Op(i % 2), Local: m.At(off), Len: size / count, Target: id, Remote: remotes[p] + off}
		}
		return rs
	}
	toVictim, toOther := requests(victim), requests(other)

	stop, started, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { // moves bytes to the other all the time
		defer close(ended)
		for n := 0; ; n++ {
			if err := transferOnce(t, engine, toOther); err != nil {
				ended <- fmt.Errorf("round %d: %w", n, err)
				return
			}
			if n == 3 {
				close(started)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	victimEnded := make(chan error, 1)
	b := newBatch(t, engine, count)
	moved := make(chan struct{})
	go func() { // and to the victim, until that fails
		for n := 0; ; n++ {
			if n == 3 {
				close(moved)
			}
			if err := b.Reset(); err != nil {
				victimEnded <- err
				return
			}
			if err := submitAndWait(t, b, toVictim); err != nil {
				victimEnded <- err
				return
			}
		}
	}()
	for _, c := range []chan struct{}{started, moved} {
		select {
		case <-c:
		case <-time.After(soon):
			t.Fatal("the transfers do not run")
		}
	}
	within(t, "the end of the requests to the victim", soon, func() {
		victim.Kill()
		wantFault(t, "requests to the victim", <-victimEnded, xfer.Socket)
	})
	for i := range b.Len() {
		s, err := b.Status(i)
		if err != nil || !s.State.Terminal() {
			t.Errorf("request %d to the victim: %v, %v", i, s.State, err)
		}
	}
	within(t, "a new request to the victim", soon, func() {
		err := transferOnce(t, engine, toVictim[:1])
		wantFault(t, "a new request to the victim", err, xfer.Socket)
	})
	close(stop)
	if err := <-ended; err != nil {
		t.Errorf("requests to the other peer: %v", err)
	}
	if got := counter(engine, "tcp/"+other.Name+"/lane 1", "breaks"); got != 0 {
		t.Errorf("%d connections to the other peer broke", got)
	}
}

// TestCxxRestartsOnAnotherDataPort gives a C++ engine a successor with the same name and another data port, while
// somebody silent listens on the old one. The engine's own choice of ports is random, so the name is that of a relay.
func TestCxxRestartsOnAnotherDataPort(t *testing.T) {
	peer := cxx.Start(t)
	old := allocCxx(t, peer, 4096)
	relay := startRelay(t, peer.Name)
	engine := openEngine(t, nil)
	local := alloc(t, engine, 4096)
	id := openSegment(t, engine, relay.name)
	if err := engine.Write(bounded(t), id, local.At(0), old, 4096); err != nil {
		t.Fatal(err)
	}
	before, err := engine.Segment(id)
	if err != nil {
		t.Fatal(err)
	}
	peer.Kill()
	silent, err := net.Listen("tcp", before.TCP.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	peer = cxx.Start(t)
	remote := allocCxx(t, peer, 4096)
	relay.target.Store(&peer.Name)

	payload := pattern.Bytes(90, 4096)
	copy(local.Bytes(), payload)
	within(t, "the first request after the restart", soon, func() {
		// It names memory of the engine that is gone, for all that ours can know, and must not reach the new one.
		err := engine.Write(bounded(t), id, local.At(0), remote, 4096)
		wantFault(t, "the first request after the restart", err, xfer.WrongPeer)
	})
	wantCxx(t, peer, "memory after the first request", remote, make([]byte, 4096))
	within(t, "the second request after the restart", soon, func() {
		if err := engine.Write(bounded(t), id, local.At(0), remote, 4096); err != nil {
			t.Errorf("the second request after the restart: %v", err)
		}
	})
	wantCxx(t, peer, "write", remote, payload)
}

// relay passes control connections on to an engine that can be exchanged.
type relay struct {
	name   string
	target atomic.Pointer[string]
}

func startRelay(t *testing.T, target string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{name: l.Addr().String()}
	r.target.Store(&target)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { r.pass(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return r
}

// pass ends when the engine has: it closes behind its reply.
func (r *relay) pass(c net.Conn) {
	defer func() { _ = c.Close() }()
	up, err := net.Dial("tcp", *r.target.Load())
	if err != nil {
		return
	}
	defer func() { _ = up.Close() }()
	var sending sync.WaitGroup
	sending.Go(func() { _, _ = io.Copy(up, c) })
	_, _ = io.Copy(c, up)
	_ = c.Close()
	sending.Wait()
}

func TestCxxRestartsUnderAnotherName(t *testing.T) {
	peer := cxx.Start(t)
	remote := allocCxx(t, peer, 4096)
	engine := openEngine(t, nil)
	local := alloc(t, engine, 4096)
	old := openSegment(t, engine, peer.Name)
	if err := engine.Write(bounded(t), old, local.At(0), remote, 4096); err != nil {
		t.Fatal(err)
	}
	peer.Kill()

	peer = cxx.Start(t)
	remote = allocCxx(t, peer, 4096)
	within(t, "a request under the old name", soon, func() {
		wantFault(t, "a request under the old name", engine.Write(bounded(t), old, local.At(0), remote, 4096), xfer.Socket)
	})
	payload := pattern.Bytes(91, 4096)
	copy(local.Bytes(), payload)
	if err := engine.Write(bounded(t), openSegment(t, engine, peer.Name), local.At(0), remote, 4096); err != nil {
		t.Fatal(err)
	}
	wantCxx(t, peer, "write", remote, payload)
	if err := engine.CloseSegment(old); err != nil {
		t.Error(err)
	}
}

func TestMoonpathTargetShutsDownUnderIdleConnections(t *testing.T) {
	const size = 64 * kib
	peer := cxx.Start(t)
	local := allocCxx(t, peer, size)
	leaving, staying := openEngine(t, nil), openEngine(t, nil)
	memory, stays := alloc(t, leaving, size), alloc(t, staying, size)
	name, addr := leaving.Name(), uint64(memory.At(0))
	for _, target := range []struct {
		name string
		addr uint64
	}{{name, addr}, {staying.Name(), uint64(stays.At(0))}} {
		var batches []cxx.Batch
		for i := range uint64(4) { // so that the pool has several connections
			batches = append(batches, cxx.Batch{Op: cxx.Write, Target: target.name, Locals: []uint64{local}, Remotes: []uint64{target.addr + i*4096}, Lengths: []uint64{4096}})
		}
		if err := peer.Parallel(20, batches...); err != nil {
			t.Fatal(err)
		}
	}
	within(t, "the shutdown", 2*time.Second, func() {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		if err := leaving.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	for range 5 { // one for each idle connection of the pool, and one that finds out that nobody listens
		within(t, "a request to the engine that left", soon, func() {
			wantCode(t, "a request to the engine that left", peer.Transfer(cxx.Write, name, local, addr, 4096), -1)
		})
	}
	fillCxx(t, peer, local, size, 92)
	if err := peer.Transfer(cxx.Write, staying.Name(), local, uint64(stays.At(0)), size); err != nil {
		t.Errorf("a request to the engine that stayed: %v", err)
	}
	if difference := firstDifference(stays.Bytes(), pattern.Bytes(92, size)); difference != "" {
		t.Error(difference)
	}
}

func TestTwoNamesOfOneCxxTarget(t *testing.T) {
	peer := cxx.Start(t)
	remote := allocCxx(t, peer, 4096)
	engine := openEngine(t, nil)
	local := alloc(t, engine, 4096)
	alias := strings.Replace(peer.Name, "127.0.0.1", "localhost", 1)
	first, second := openSegment(t, engine, peer.Name), openSegment(t, engine, alias)
	if first == second {
		t.Errorf("both names have the id %d", first)
	}
	for i, id := range []moonpath.SegmentID{first, second, first} {
		payload := pattern.Bytes(uint64(95+i), 4096)
		copy(local.Bytes(), payload)
		if err := engine.Write(bounded(t), id, local.At(0), remote, 4096); err != nil {
			t.Fatal(err)
		}
		wantCxx(t, peer, "write", remote, payload)
		if err := engine.ProbePeerAlive(id); err != nil {
			t.Error(err)
		}
	}
	if err := engine.CloseSegment(first); err != nil {
		t.Fatal(err)
	}
	if err := engine.Read(bounded(t), second, local.At(0), remote, 4096); err != nil {
		t.Errorf("under the second name after the first was closed: %v", err)
	}
	wantFault(t, "under the closed name", engine.Read(bounded(t), first, local.At(0), remote, 4096), xfer.InvalidArgument)
}

func TestTwoNamesOfOneMoonpathTarget(t *testing.T) {
	peer := cxx.Start(t)
	local := allocCxx(t, peer, 4096)
	engine := openEngine(t, nil)
	memory := alloc(t, engine, 4096)
	for i := range 20 {
		name := engine.Name()
		if i%2 == 1 {
			name = strings.Replace(name, "127.0.0.1", "localhost", 1)
		}
		fillCxx(t, peer, local, 4096, uint64(100+i))
		if err := peer.Transfer(cxx.Write, name, local, uint64(memory.At(0)), 4096); err != nil {
			t.Fatalf("under the name %s: %v", name, err)
		}
		if difference := firstDifference(memory.Bytes(), pattern.Bytes(uint64(100+i), 4096)); difference != "" {
			t.Error(difference)
		}
	}
	if got := counter(engine, "tcp", "sessions"); got > 4 {
		t.Errorf("%d connections for two names of one engine, want at most the 4 of a pool", got)
	}
}

// wantFault wants one of the codes, and an error that tells its reader where and what next.
func wantFault(t testing.TB, what string, err error, codes ...moonpath.Code) {
	t.Helper()
	var f *moonpath.Fault
	if !errors.As(err, &f) {
		t.Errorf("%s: %v, want a *Fault with one of %v", what, err, codes)
		return
	}
	for _, code := range codes {
		if f.Code == code && f.Stage != "" && f.NextStep() != "" {
			return
		}
	}
	t.Errorf("%s: %v, want one of %v", what, err, codes)
}
