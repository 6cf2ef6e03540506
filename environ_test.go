package moonpath_test

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// withEnviron opens an engine under the given variables.
func withEnviron(t testing.TB, environ ...string) *moonpath.Engine {
	t.Helper()
	return openEngine(t, func(o *moonpath.Options) { o.Environ = environ })
}

// setting returns a setting as the engine resolved it.
func setting(t testing.TB, e *moonpath.Engine, key string) config.Resolved {
	t.Helper()
	all := e.Settings()
	i := slices.IndexFunc(all, func(r config.Resolved) bool { return r.Key == key })
	if i < 0 {
		t.Fatalf("no setting %s", key)
	}
	return all[i]
}

func dataPort(t testing.TB, e *moonpath.Engine) int {
	t.Helper()
	d, err := e.Segment(moonpath.LocalSegment)
	if err != nil {
		t.Fatal(err)
	}
	return int(d.TCP.Port)
}

func TestPortRangeComesFromTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		name      string
		environ   []string
		low, high int
		warnings  int
	}{
		{"default", nil, 15000, 17000, 0},
		{"both", []string{"MC_MIN_RPC_PORT=21000", "MC_MAX_RPC_PORT=21200"}, 21000, 21200, 0},
		{"old names", []string{"MC_MIN_PRC_PORT=21000", "MC_MAX_PRC_PORT=21200"}, 21000, 21200, 2},
		{"in reverse", []string{"MC_MIN_RPC_PORT=21200", "MC_MAX_RPC_PORT=21000"}, 15000, 17000, 1},
		{"into the range of outgoing connections", []string{"MC_MIN_RPC_PORT=40000", "MC_MAX_RPC_PORT=41000"}, 15000, 17000, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := withEnviron(t, c.environ...)
			for _, port := range []int{e.GetRPCPort(), dataPort(t, e)} {
				if port < c.low || port > c.high {
					t.Errorf("port %d is not from %d to %d", port, c.low, c.high)
				}
			}
			if got := e.Warnings(); len(got) < c.warnings || c.warnings == 0 && len(got) > 0 {
				t.Errorf("warnings %v, want %d", got, c.warnings)
			}
		})
	}
}

func TestExhaustedPortRangeIsAnError(t *testing.T) {
	_, err := moonpath.Open(t.Context(), moonpath.Options{Host: "127.0.0.1", Environ: []string{"MC_MIN_RPC_PORT=21301", "MC_MAX_RPC_PORT=21301"}})
	requireFault(t, err, xfer.Socket) // the control port takes the only one, and the data port finds none
	if !strings.Contains(err.Error(), "range") {
		t.Errorf("the error does not name the range: %v", err)
	}
}

func TestForceTCPIsSeen(t *testing.T) {
	e := withEnviron(t, "MC_FORCE_TCP=0") // any value counts
	if s := setting(t, e, "transport.force_tcp"); s.Value != "true" || s.Source != config.Environment {
		t.Errorf("resolved to %+v", s)
	}
	var installed []string
	for _, i := range e.Transports() {
		if i.Installed {
			installed = append(installed, i.Name)
		}
	}
	if !slices.Equal(installed, []string{"local", "tcp"}) {
		t.Errorf("installed %v", installed)
	}
}

func TestProtocolVersion1IsForced(t *testing.T) {
	for _, c := range []struct {
		environ []string
		opcode  byte
	}{{nil, tcpframe.OpRead | tcpframe.OpV2}, {[]string{"MC_TCP_PROTO=1"}, tcpframe.OpRead}, {[]string{"MC_TCP_PROTO=2"}, tcpframe.OpRead | tcpframe.OpV2}} {
		asked := make(chan byte, 1)
		peer := newRawPeer(t, func(c net.Conn) {
			h, err := readHeader(c)
			if err != nil {
				return
			}
			asked <- h.Opcode
			if h.Opcode&tcpframe.OpV2 == 0 {
				c.Write(filled(int(h.Size), 7))
			} else {
				answerRead(c, h, 7)
			}
			readHeader(c) // until the engine closes
		})
		e := withEnviron(t, c.environ...)
		memory := alloc(t, e, 64)
		if err := e.Read(t.Context(), openName(t, e, peer.name), memory.At(0), rawMemory, 64); err != nil {
			t.Errorf("%v: %v", c.environ, err)
		}
		if got := <-asked; got != c.opcode {
			t.Errorf("%v: opcode %#x, want %#x", c.environ, got, c.opcode)
		}
		if memory.Bytes()[63] != 7 {
			t.Errorf("%v: wrong bytes", c.environ)
		}
	}
}

func TestDisabledMetadataCacheFetchesAtEveryUse(t *testing.T) {
	for _, c := range []struct {
		environ []string
		lookups int64
	}{{nil, 1}, {[]string{"MC_DISABLE_METACACHE="}, 4}} { // opening twice and two submissions
		e := withEnviron(t, c.environ...)
		peer := newRawPeer(t, nil) // ends before the engine, which would wait for its answers
		memory := alloc(t, e, 64)
		openName(t, e, peer.name)
		id := openName(t, e, peer.name)
		b := newBatch(t, e, 4)
		r := moonpath.Request{Op: moonpath.OpRead, Local: memory.At(0), Len: 64, Target: id, Remote: rawMemory}
		if _, err := b.Submit(t.Context(), []moonpath.Request{r, r}); err != nil {
			t.Fatal(err)
		}
		if err := e.SubmitTransfer(b.ID(), []moonpath.Request{r}); err != nil {
			t.Fatal(err)
		}
		if got := peer.lookups.Load(); got != c.lookups {
			t.Errorf("%v: %d lookups, want %d", c.environ, got, c.lookups)
		}
	}
}

func TestDescriptionsAreRefreshedAtAnInterval(t *testing.T) {
	target, e := openEngine(t, nil), withEnviron(t, "MC_TE_METADATA_REFRESH_INTERVAL_SECONDS=1")
	id := open(t, e, target)
	there := alloc(t, target, 4096)
	eventually(t, 5*time.Second, "the new buffer is seen", func() bool {
		d, err := e.Segment(id)
		return err == nil && d.Find(uint64(there.At(0))) != nil
	})
}

func TestLanesAreBoundedByTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		environ     string
		connections int64
	}{{"MC_TCP_LANES_PER_PEER=1", 1}, {"MC_TCP_LANES_PER_PEER=2", 2}, {"MC_TCP_MAX_CONNECTIONS_PER_PEER=3", 3}} {
		e := withEnviron(t, c.environ)
		peer := newRawPeer(t, nil)
		memory := alloc(t, e, 1<<20)
		id := openName(t, e, peer.name)
		load := func() {
			b, err := e.NewBatch(moonpath.BatchOptions{Capacity: 32}) // ends with the engine
			if err != nil {
				t.Fatal(err)
			}
			rs := make([]moonpath.Request, 32)
			for i := range rs {
				rs[i] = moonpath.Request{Op: moonpath.Op(i & 1), Local: memory.At(0), Len: 1 << (10 + i%11), Target: id, Remote: rawMemory}
			}
			submit(t, b, rs...)
		}
		eventually(t, 5*time.Second, c.environ+": all lanes are connected", func() bool {
			load()
			return peer.connections.Load() >= c.connections
		})
		for range 20 {
			load()
		}
		if got := peer.connections.Load(); got != c.connections {
			t.Errorf("%s: %d connections, want %d", c.environ, got, c.connections)
		}
	}
}

func TestQueueBoundIsBackPressure(t *testing.T) {
	e := withEnviron(t, "MC_TCP_MAX_QUEUED_TRANSFERS_PER_PEER=4")
	peer := newRawPeer(t, nil)
	memory := alloc(t, e, 1<<20)
	b := newBatch(t, e, 4096)
	r := moonpath.Request{Op: moonpath.OpRead, Local: memory.At(0), Len: 1 << 20, Target: openName(t, e, peer.name), Remote: rawMemory}
	for {
		n, err := b.TrySubmit([]moonpath.Request{r})
		if err == nil && n == 1 {
			if b.Len() == 4096 {
				t.Fatal("the queue takes everything")
			}
			continue
		}
		requireFault(t, err, xfer.TooManyRequests)
		if n != 0 {
			t.Errorf("%d requests accepted beside the refusal", n)
		}
		break
	}
}

func TestTransferTimeoutEndsSynchronousTransfers(t *testing.T) {
	if s := setting(t, withEnviron(t, "MC_TRANSFER_TIMEOUT=1"), "transfer.timeout"); s.Value != "5s" {
		t.Errorf("MC_TRANSFER_TIMEOUT=1 is %+v, want 5s, the least that Mooncake takes", s)
	}
	e := openEngine(t, func(o *moonpath.Options) { o.Settings = map[string]string{"transfer.timeout": "30ms"} })
	memory := alloc(t, e, 64)
	id := openName(t, e, newRawPeer(t, nil).name)
	for name, move := range map[string]func() error{
		"Read":  func() error { return e.Read(t.Context(), id, memory.At(0), rawMemory, 64) },
		"Write": func() error { return e.Write(t.Context(), id, memory.At(0), rawMemory, 64) },
	} {
		start := time.Now()
		err := move()
		requireFault(t, err, xfer.Deadline)
		if !strings.Contains(err.Error(), "MC_TRANSFER_TIMEOUT") {
			t.Errorf("%s: the error does not name the limit: %v", name, err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}

func TestStatusTimeoutEndsATransferToASilentPeer(t *testing.T) {
	e := withEnviron(t, "MC_TCP_STATUS_TIMEOUT_SEC=1")
	memory := alloc(t, e, 64)
	id := openName(t, e, newRawPeer(t, nil).name)
	start := time.Now()
	err := e.Write(t.Context(), id, memory.At(0), rawMemory, 64)
	requireFault(t, err, xfer.Deadline)
	if took := time.Since(start); took < 900*time.Millisecond || took > 5*time.Second {
		t.Errorf("took %v, want about 1 s", took)
	}
}

func TestDoubtfulVariablesGiveWarnings(t *testing.T) {
	e := withEnviron(t, "MC_TCP_LANES_PER_PEER=many", "MC_FORCE_TPC=1", "MC_MTU=4096", "PATH=/bin", "MC_LOG_DIR=/nowhere")
	want := map[string]string{"MC_TCP_LANES_PER_PEER": "many", "MC_FORCE_TPC": "MC_FORCE_TCP", "MC_MTU": "rdma", "MC_LOG_DIR": "ignored"}
	for _, w := range e.Warnings() {
		if !strings.Contains(w.Text, want[w.Env]) {
			t.Errorf("%s: %q does not mention %q", w.Env, w.Text, want[w.Env])
		}
		delete(want, w.Env)
	}
	if len(want) > 0 {
		t.Errorf("no warning about %v", want)
	}
	if s := setting(t, e, "tcp.lanes"); s.Value != "4" || s.Source != config.Default {
		t.Errorf("lanes resolved to %+v", s)
	}
}

func TestCodeIsStrongerThanTheEnvironment(t *testing.T) {
	e := openEngine(t, func(o *moonpath.Options) {
		o.Environ = []string{"MC_TCP_LANES_PER_PEER=2", "MC_TRANSFER_TIMEOUT=60", "MC_HANDSHAKE_PORT=13000"}
		o.Flags = map[string]string{"transfer.timeout": "7s", "tcp.lanes": "6"}
		o.Settings = map[string]string{"tcp.lanes": "8"}
	})
	for key, want := range map[string]string{"tcp.lanes": "8", "transfer.timeout": "7s", "control.port_default": "13000"} {
		if s := setting(t, e, key); s.Value != want {
			t.Errorf("%s is %+v, want %s", key, s, want)
		}
	}
}
