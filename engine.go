package moonpath

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/metadata/p2p"
	"github.com/moonpath-io/moonpath/multi"
	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/all"
	"github.com/moonpath-io/moonpath/xfer"
)

// Engine is one transfer engine with one segment. Its methods may be called from any goroutine. A process
// may have many.
type Engine struct {
	options  Options
	settings *config.Values
	warnings []config.Warning
	log      *slog.Logger
	counters *obs.Group
	events   *obs.Recorder

	incarnation uint64
	regions     mem.Table
	node        *p2p.Node
	peers       *segment.Cache
	multi       *multi.Multi

	installMu sync.Mutex // orders installation and registration: every transport gets every region; before publishMu
	publishMu sync.Mutex // one publication at a time
	self      atomic.Pointer[func() *segment.Desc]
	gen       uint64

	memory   memoryTable
	notes    noteTable
	singles  chan *Batch // idle one-request batches of Write and Read
	refresh  refresher
	closing  atomic.Bool
	closed   chan struct{} // closed when Close is over
	closeErr error
}

// recorded is how many decisions and failures are kept.
const recorded = 1024

// Open starts an engine: ports are bound, then transports opened, then the segment is published. It serves
// peers when Open returns.
func Open(ctx context.Context, o Options) (*Engine, error) {
	values, warnings, err := o.resolve()
	if err != nil {
		return nil, &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageArgument, Cause: err, Detail: "settings", Next: "run moonpath info to see every setting with its range"}
	}
	if o.DataPort < 0 || o.DataPort > 65535 {
		return nil, &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageArgument, Detail: fmt.Sprintf("data port %d is none", o.DataPort), Next: "use 1 to 65535, or 0 for a free one"}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Bind == "" {
		o.Bind = o.Host
	}
	e := &Engine{options: o, settings: values, warnings: warnings, log: o.Logger, counters: obs.NewGroup(), events: obs.NewRecorder(recorded),
		incarnation: newIncarnation(), singles: make(chan *Batch, maxSingles), closed: make(chan struct{})}
	for _, w := range warnings {
		e.log.Warn(w.Text, "variable", w.Env)
	}
	low, high := config.PortRange(values)
	e.node, err = p2p.Listen(ctx, p2p.Options{
		Host: o.Host, Bind: o.Bind, Port: o.ControlPort, PortLow: low, PortHigh: high, Backlog: int(values.Int("control.backlog")),
		MaxFrame: values.Size("control.max_frame"), ConnectTimeout: values.Duration("control.connect_timeout"),
		DefaultPort: int(values.Int("control.port_default")), IPv6: values.Bool("net.ipv6"),
		Log: e.log, Obs: e.counters.Group("control"),
	})
	if err != nil {
		return nil, err
	}
	e.peers = segment.NewCache(e.node)
	e.multi = multi.New(multi.Config{
		Regions: &e.regions, Peers: e.peers, Self: e.describeSelf, MaxQueued: int(values.Int("tcp.max_queued")),
		Absent: e.absent, Log: e.log, Obs: e.counters.Group("multi"), Events: e.events,
	})
	e.renew()
	if err := e.installAll(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	e.refresh.start(e)
	return e, nil
}

// installAll installs the transports of the options.
func (e *Engine) installAll(ctx context.Context) error {
	wanted := e.options.Transports
	if wanted == nil {
		for _, f := range all.Factories() {
			if f.Probe().State == transport.Ready {
				wanted = append(wanted, f.Name)
			}
		}
	}
	for _, name := range append([]string{"local"}, wanted...) {
		if _, err := e.install(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// newIncarnation returns a random number that names this start of the engine; 0 is no incarnation.
func newIncarnation() uint64 {
	var b [8]byte
	for {
		rand.Read(b[:]) // never fails
		if n := binary.LittleEndian.Uint64(b[:]); n != 0 {
			return n
		}
	}
}

// hostIdentity is a hash of the kernel's boot id: equal on one running kernel, telling nothing else. It is
// empty, which says nothing, where the boot id cannot be read.
var hostIdentity = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(id)
	return hex.EncodeToString(sum[:8])
})

// Name is the segment's name, under which peers open it: host:port, an IPv6 host in brackets.
func (e *Engine) Name() string { return e.node.Name() }

// Settings returns every option with its value and where that came from, sorted by key.
func (e *Engine) Settings() []config.Resolved { return e.settings.All() }

// Warnings returns what was doubtful in the environment when the engine was opened.
func (e *Engine) Warnings() []config.Warning { return e.warnings }

// Counters returns the engine's counters, by transport, peer and lane.
func (e *Engine) Counters() []obs.Sample { return e.counters.Snapshot() }

// Events returns the last decisions and failures, oldest first.
func (e *Engine) Events() []obs.Event { return e.events.Events() }

// describeSelf returns the newest description.
func (e *Engine) describeSelf() *segment.Desc { return (*e.self.Load())() }

// renew begins a new version of the description, which is made when somebody first asks for it: it takes a
// walk over all registrations. publishMu is held, or nobody else knows the engine yet.
func (e *Engine) renew() (describe func() *segment.Desc) {
	e.gen++
	gen := e.gen
	describe = sync.OnceValue(func() *segment.Desc { return e.describe(gen) })
	e.self.Store(&describe)
	return describe
}

// describe makes a description from what is registered and installed.
func (e *Engine) describe(gen uint64) *segment.Desc {
	d := &segment.Desc{Name: e.node.Name(), Gen: gen, TCP: segment.Endpoint{Host: e.options.Host},
		Ext: &segment.Extension{Incarnation: e.incarnation, Host: hostIdentity()}}
	d.Buffers = make([]segment.Buffer, 0, e.regions.Count())
	for r := range e.regions.All() {
		if r.Remote {
			d.Buffers = append(d.Buffers, segment.Buffer{Addr: uint64(r.Addr), Len: r.Len, Location: r.Location})
		}
	}
	for _, t := range e.multi.Installed() {
		t.Describe(d)
	}
	return d
}

// publish makes the newest description what peers get.
func (e *Engine) publish(ctx context.Context) error {
	e.publishMu.Lock()
	defer e.publishMu.Unlock()
	describe := e.renew()
	if !e.servesPeers() {
		return e.node.Withdraw(ctx)
	}
	return e.node.Publish(ctx, describe)
}

// servesPeers reports whether a transport offers anything that a peer could use.
func (e *Engine) servesPeers() bool {
	var offers segment.Desc
	for _, t := range e.multi.Installed() {
		t.Describe(&offers)
	}
	return len(offers.Protocols) > 0
}

// closeTimeout bounds what Close waits for by itself.
const closeTimeout = 5 * time.Second

// Close ends the engine: batches are canceled, what peers have under way is finished within five seconds,
// connections end, all memory is unregistered, and what Alloc made is freed. A second Close waits for the first.
func (e *Engine) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return e.close(ctx)
}

// Shutdown is Close after the engine's own transfers have ended; both are bounded by ctx.
func (e *Engine) Shutdown(ctx context.Context) error {
	drained := e.multi.Drain(ctx)
	return errors.Join(drained, e.close(ctx))
}

func (e *Engine) close(ctx context.Context) error {
	if e.closing.Swap(true) {
		<-e.closed
		return e.closeErr
	}
	defer close(e.closed)
	e.refresh.stop()
	var errs []error
	errs = append(errs, e.node.Withdraw(ctx))
	e.multi.Close(ctx)
	for _, t := range e.multi.Installed() {
		errs = append(errs, t.Close(ctx))
	}
	errs = append(errs, e.node.Close(ctx), e.release(ctx))
	e.closeErr = errors.Join(errs...)
	return e.closeErr
}

func (e *Engine) checkOpen() error {
	if e.closing.Load() {
		return &xfer.Fault{Code: xfer.Closed, Stage: xfer.StageArgument, Detail: "the engine is closed"}
	}
	return nil
}
