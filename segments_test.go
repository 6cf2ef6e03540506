package moonpath_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/xfer"
)

// deadAddress is one at which nobody listens.
func deadAddress(t testing.TB) string {
	t.Helper()
	l := listen(t)
	defer l.Close()
	return l.Addr().String()
}

// freePort returns a port that nobody uses, and that may be bound again at once after connections to it.
func freePort(t testing.TB) int {
	t.Helper()
	l := listen(t)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// answering listens and answers every connection with the same bytes.
func answering(t testing.TB, answer string) string {
	t.Helper()
	l := listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, answer)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func TestOpenSegmentOfWhatIsNoPeerFailsSoon(t *testing.T) {
	e := openEngine(t, nil)
	silent := listen(t) // the kernel accepts, nobody answers
	t.Cleanup(func() { silent.Close() })
	for _, c := range []struct {
		name, segment string
		code          moonpath.Code
		limit         time.Duration
	}{
		{"nobody listens", deadAddress(t), xfer.Socket, time.Second},
		{"default port", "127.0.0.1", xfer.Socket, time.Second},
		{"name that cannot exist", "no-such-host.invalid:15000", xfer.DNS, 6 * time.Second},
		{"no host", ":15000", xfer.DNS, time.Second},
		{"only a colon", ":", xfer.DNS, time.Second},
		{"HTTP", answering(t, "HTTP/1.1 400 Bad Request\r\n\r\n"), xfer.Socket, time.Second},
		{"hangs up", answering(t, ""), xfer.Socket, time.Second},
		{"empty frame", answering(t, "\x00\x00\x00\x00\x00\x00\x00\x00"), xfer.Socket, time.Second},
		{"absurd length", answering(t, "\xff\xff\xff\xff\xff\xff\xff\x7f\x01{}"), xfer.Socket, time.Second},
		{"no JSON", answering(t, "\x04\x00\x00\x00\x00\x00\x00\x00\x01xyz"), xfer.MalformedJSON, time.Second},
		{"no descriptor", answering(t, "\x05\x00\x00\x00\x00\x00\x00\x00\x01null"), xfer.Metadata, time.Second},
		{"descriptor of the wrong shape", answering(t, "\x05\x00\x00\x00\x00\x00\x00\x00\x01[{}]"), xfer.Metadata, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			id, err := e.OpenSegment(c.segment)
			if took := time.Since(start); took > c.limit {
				t.Errorf("took %v", took)
			}
			requireFault(t, err, c.code)
			var f *moonpath.Fault
			if errors.As(err, &f) && f.Peer != c.segment {
				t.Errorf("the error names %q instead of %q", f.Peer, c.segment)
			}
			if id != 0 {
				t.Errorf("id %d beside the error", id)
			}
		})
	}
	t.Run("says nothing", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := e.OpenSegmentContext(ctx, silent.Addr().String())
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
		requireFault(t, err, xfer.CodeOf(err))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v does not say that time ran out", err)
		}
	})
	t.Run("nothing is remembered", func(t *testing.T) {
		if err := e.SyncSegmentCache(""); err != nil {
			t.Errorf("what could not be opened is asked again: %v", err)
		}
	})
}

// The time limit of a call without a deadline is the engine's own.
func TestOpenSegmentWithoutDeadlineEndsByTheTransferTimeout(t *testing.T) {
	e := openEngine(t, func(o *moonpath.Options) { o.Settings = map[string]string{"transfer.timeout": "50ms"} })
	silent := listen(t)
	t.Cleanup(func() { silent.Close() })
	start := time.Now()
	_, err := e.OpenSegment(silent.Addr().String())
	if took := time.Since(start); took > time.Second {
		t.Errorf("took %v", took)
	}
	requireFault(t, err, xfer.Deadline)
}

func TestSyncSegmentCacheKeepsWhatItCannotFetch(t *testing.T) {
	target, other, e := openEngine(t, nil), openEngine(t, nil), openEngine(t, nil)
	alloc(t, target, 4096)
	id := open(t, e, target)
	open(t, e, other)
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	err := e.SyncSegmentCache("")
	requireFault(t, err, xfer.Socket)
	var f *moonpath.Fault
	if errors.As(err, &f) && f.Peer != target.Name() {
		t.Errorf("the error names %q, want %q: %v", f.Peer, target.Name(), err)
	}
	if d, err := e.Segment(id); err != nil || len(d.Buffers) != 1 {
		t.Errorf("the old description is gone: %v, %v", d, err)
	}
}

// restarted is an engine at fixed ports with one registration, at the same address in every life.
func restarted(t *testing.T, ports moonpath.Options, memory moonpath.Addr, n uint64) *moonpath.Engine {
	t.Helper()
	ports.Host, ports.Environ = "127.0.0.1", []string{}
	e, err := moonpath.Open(t.Context(), ports)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.RegisterLocalMemory(memory, n, "*", true); err != nil {
		t.Fatal(err)
	}
	return e
}

// The second life of a peer has the same name, mostly the same ports, and a registration at the same address: only its
// incarnation is another. What was planned for the first must not reach it.
func TestRestartedPeerIsNotServedThroughItsOldDescription(t *testing.T) {
	memory, there := foreign(t, 4096)
	e := openEngine(t, nil)
	here := alloc(t, e, 4096)
	pin, b := pinned(t, e, "tcp"), newBatch(t, e, 1)
	for _, c := range []struct {
		name      string
		connected bool // to the first life
		moves     bool // to another data port
		code      moonpath.Code
	}{
		{"connected before", true, false, xfer.WrongPeer},
		{"described before", false, false, xfer.WrongPeer},
		{"connected before, data port moves", true, true, xfer.Socket},
		{"described before, data port moves", false, true, xfer.Socket},
	} {
		t.Run(c.name, func(t *testing.T) {
			ports := moonpath.Options{ControlPort: freePort(t), DataPort: freePort(t)}
			first := restarted(t, ports, memory, 4096)
			id := open(t, e, first)
			r := moonpath.Request{Op: moonpath.OpWrite, Pin: pin, Local: here.At(0), Len: 4096, Target: id, Remote: uint64(memory)}
			if c.connected {
				transfer(t, b, r)
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			if c.moves {
				ports.DataPort = freePort(t)
			}
			second := restarted(t, ports, memory, 4096)
			defer second.Close()
			if second.Name() != first.Name() {
				t.Fatalf("the second life has the name %s, the first had %s", second.Name(), first.Name())
			}

			fill(here.Bytes(), 200)
			clear(there)
			submit(t, b, r)
			requireFault(t, b.Wait(t.Context()), c.code)
			if !bytes.Equal(there, make([]byte, 4096)) {
				t.Error("bytes for the first life were written into the second")
			}

			// The failure had the description fetched anew; the same id leads to the second life then.
			eventually(t, 5*time.Second, "the second life is reached", func() bool {
				submit(t, b, r)
				return b.Wait(t.Context()) == nil
			})
			if !bytes.Equal(there, here.Bytes()) {
				t.Error("the bytes are not there")
			}
			if err := e.CloseSegment(id); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestSegmentNamesSayWhereAnEngineIs(t *testing.T) {
	e := openEngine(t, nil)
	host, port, err := net.SplitHostPort(e.Name())
	if err != nil || host != "127.0.0.1" || port != strconv.Itoa(e.GetRPCPort()) {
		t.Errorf("name %s, port %d", e.Name(), e.GetRPCPort())
	}
	if e.GetLocalIPAndPort() != e.Name() {
		t.Errorf("GetLocalIPAndPort is %s", e.GetLocalIPAndPort())
	}
	d, err := e.Segment(moonpath.LocalSegment)
	if err != nil || d.Name != e.Name() || d.TCP.Host != "127.0.0.1" || d.TCP.Port == 0 {
		t.Errorf("its own description is %+v, %v", d, err)
	}
	six, err := moonpath.Open(t.Context(), moonpath.Options{Host: "::1", Environ: []string{}})
	if err != nil {
		t.Skipf("no IPv6 loopback: %v", err)
	}
	defer six.Close()
	if host, port := segment.SplitName(six.Name()); host != "::1" || int(port) != six.GetRPCPort() || six.Name()[0] != '[' {
		t.Errorf("IPv6 name is %s", six.Name())
	}
	if err := e.ProbePeerAlive(openName(t, e, six.Name())); err != nil {
		t.Errorf("the IPv6 engine is not reached by its name: %v", err)
	}
}

func TestOpenRefusesPortsAndHostsThatItCannotHave(t *testing.T) {
	taken := listen(t)
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	for _, c := range []struct {
		name    string
		options moonpath.Options
		code    moonpath.Code
	}{
		{"no host", moonpath.Options{}, xfer.InvalidArgument},
		{"host with a port", moonpath.Options{Host: "127.0.0.1:80"}, xfer.InvalidArgument},
		{"foreign address", moonpath.Options{Host: "192.0.2.1"}, xfer.Socket},
		{"control port taken", moonpath.Options{Host: "127.0.0.1", ControlPort: port}, xfer.Socket},
		{"data port taken", moonpath.Options{Host: "127.0.0.1", DataPort: port}, xfer.Socket},
		{"control port too high", moonpath.Options{Host: "127.0.0.1", ControlPort: 65536}, xfer.InvalidArgument},
		{"data port too high", moonpath.Options{Host: "127.0.0.1", DataPort: 65536}, xfer.InvalidArgument},
		{"data port negative", moonpath.Options{Host: "127.0.0.1", DataPort: -1}, xfer.InvalidArgument},
		{"unknown setting", moonpath.Options{Host: "127.0.0.1", Settings: map[string]string{"tcp.lane": "4"}}, xfer.InvalidArgument},
		{"setting out of range", moonpath.Options{Host: "127.0.0.1", Settings: map[string]string{"tcp.lanes": "17"}}, xfer.InvalidArgument},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options.Environ = []string{}
			e, err := moonpath.Open(t.Context(), c.options)
			requireFault(t, err, c.code)
			if e != nil {
				t.Error("an engine beside the error")
			}
		})
	}
}
