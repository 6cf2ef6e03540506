package multi

//moonpath:goroutines

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// Config is what the switchboard needs of its engine.
type Config struct {
	Regions   *mem.Table
	Peers     *segment.Cache
	Self      func() *segment.Desc // the engine's own description, as published last
	MaxQueued int                  // pieces queued at one route before Submit waits
	// Absent says why a transport that the peer offers or a request insists on is not installed.
	Absent func(protocol string) transport.Availability
	Log    *slog.Logger
	Obs    *obs.Group
	Events *obs.Recorder
}

// Multi is the switchboard of one engine. Its methods may be called from any goroutine.
type Multi struct {
	cfg  Config
	self *peer

	batches batchTable
	pins    pinTable

	installing sync.Mutex // one Install at a time; taken before mu
	installed  atomic.Pointer[installation]
	closed     atomic.Bool

	mu    sync.Mutex // guards peers and changes of installed
	peers map[xfer.SegmentID]*peer

	dialing chan struct{}  // bounds concurrent dials
	spawnMu sync.Mutex     // orders spawn and Close
	workers sync.WaitGroup // connectors, drainers, refreshers, sweeper
	ctx     context.Context
	cancel  context.CancelFunc
	sweep   sweeper
	count   counters
}

// counters are the switchboard's own; transports keep theirs.
type counters struct {
	tasks, failed *obs.Counter
}

// installation is an immutable snapshot of what is installed.
type installation struct {
	gen        uint64
	transports []transport.Transport // in the order of installation
}

// maxDials is how many routes are dialled at once; further ones wait.
const maxDials = 8

// New returns a switchboard without transports.
func New(cfg Config) *Multi {
	m := &Multi{cfg: cfg, peers: make(map[xfer.SegmentID]*peer), dialing: make(chan struct{}, maxDials)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.installed.Store(&installation{gen: 1})
	m.count = counters{tasks: cfg.Obs.Counter("tasks"), failed: cfg.Obs.Counter("tasks_failed")}
	m.self = newPeer(m, xfer.LocalSegment, selfSegment{cfg.Self}, "")
	m.sweep.start = func() { m.spawn(m.runSweeper) }
	return m
}

// selfSegment is the engine's own segment as a transport.Peer.
type selfSegment struct{ desc func() *segment.Desc }

func (s selfSegment) Desc() *segment.Desc                            { return s.desc() }
func (s selfSegment) Refresh(context.Context) (*segment.Desc, error) { return s.desc(), nil }

// Install adds a transport; requests submitted from now on may use it. Memory that is registered already
// is attached to it first. A second transport of the same name is an error.
func (m *Multi) Install(ctx context.Context, t transport.Transport) error {
	m.installing.Lock()
	defer m.installing.Unlock()
	for _, o := range m.Installed() {
		if o.Name() == t.Name() {
			return &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageSelect, Path: t.Name(), Detail: "the transport is installed already"}
		}
	}
	if m.closed.Load() {
		return closedFault(xfer.StageSelect)
	}
	if err := t.Attach(ctx, slices.Collect(m.cfg.Regions.All())); err != nil { // may take long: m.mu is free
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pins.intern(t.Name())
	old := m.installed.Load()
	m.installed.Store(&installation{gen: old.gen + 1, transports: append(slices.Clone(old.transports), t)})
	return nil
}

// Uninstall takes a transport out: new requests are planned without it, those that it has are finished,
// then its routes are quiesced and its memory detached. If ctx ends first the rest of its work is torn
// down. The caller closes the transport.
func (m *Multi) Uninstall(ctx context.Context, name string) (transport.Transport, error) {
	m.mu.Lock()
	old := m.installed.Load()
	at := slices.IndexFunc(old.transports, func(t transport.Transport) bool { return t.Name() == name })
	if at < 0 {
		m.mu.Unlock()
		return nil, &xfer.Fault{Code: xfer.NotSupportedTransport, Stage: xfer.StageSelect, Path: name, Detail: "the transport is not installed"}
	}
	t := old.transports[at]
	m.installed.Store(&installation{gen: old.gen + 1, transports: slices.Delete(slices.Clone(old.transports), at, at+1)})
	peers := m.allPeers()
	m.mu.Unlock()

	for _, p := range peers {
		if r := p.drop(t); r != nil {
			r.drain(ctx, uninstalledFault(name))
		}
	}
	return t, t.Detach(ctx, slices.Collect(m.cfg.Regions.All()))
}

// Installed returns the installed transports in the order of installation.
func (m *Multi) Installed() []transport.Transport { return m.installed.Load().transports }

// Changed makes all plans anew; a transport's offers have changed.
func (m *Multi) Changed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.installed.Load()
	m.installed.Store(&installation{gen: old.gen + 1, transports: old.transports})
}

// Pin interns a transport name for Request.Pin. The name need not be installed; a request that insists on
// a transport that is not there fails and says why.
func (m *Multi) Pin(name string) xfer.Pin {
	p, added := m.pins.intern(name)
	if added {
		m.Changed() // views list every transport that somebody asked for
	}
	return p
}

// failed counts and records a task that ended otherwise than completed.
func (m *Multi) failed(peer string, f *xfer.Fault) {
	m.count.failed.Add(1)
	m.cfg.Events.RecordLike(obs.Failure, peer, f.Code.Name(), f)
}

// spawn runs f in a goroutine that Close waits for; it does nothing when the switchboard is closed.
func (m *Multi) spawn(f func()) bool {
	m.spawnMu.Lock()
	defer m.spawnMu.Unlock()
	if m.closed.Load() {
		return false
	}
	m.workers.Go(f)
	return true
}

// spawnOrRun runs f in a goroutine that Close waits for, or at once when the switchboard is closed.
func (m *Multi) spawnOrRun(f func()) {
	if !m.spawn(f) {
		f()
	}
}

// peer returns the engine's record of an open segment. id 0 is the engine's own.
func (m *Multi) peer(id xfer.SegmentID) (*peer, error) {
	if id == xfer.LocalSegment {
		return m.self, nil
	}
	m.mu.Lock() // first, so that nothing is recorded that Forget has passed by
	defer m.mu.Unlock()
	s, err := m.cfg.Peers.Get(id)
	if err != nil {
		return nil, err
	}
	p := m.peers[id]
	if p == nil {
		p = newPeer(m, id, s, s.Name)
		m.peers[id] = p
	}
	return p, nil
}

// Forget ends the routes to a segment that the cache has closed, once what they hold is done. It does not
// wait.
func (m *Multi) Forget(id xfer.SegmentID) {
	m.mu.Lock()
	p := m.peers[id]
	delete(m.peers, id)
	m.mu.Unlock()
	if p == nil {
		return
	}
	why := &xfer.Fault{Code: xfer.Closed, Stage: xfer.StageSelect, Peer: p.name, Detail: "the segment was closed", Next: "open the segment again"}
	m.spawnOrRun(func() {
		for _, r := range p.dropAll(why) {
			r.drain(m.ctx, why)
		}
	})
}

// allPeers lists the peers and the engine's own segment; m.mu is held.
func (m *Multi) allPeers() []*peer {
	all := make([]*peer, 0, len(m.peers)+1)
	for _, p := range m.peers {
		all = append(all, p)
	}
	return append(all, m.self)
}

// Drain waits until no batch has unfinished tasks, or ctx ends.
func (m *Multi) Drain(ctx context.Context) error {
	for _, b := range m.batches.all() {
		if err := b.await(ctx); err != nil {
			return &xfer.Fault{Code: xfer.Interrupted, Stage: xfer.StageClose, Cause: err, Detail: "waiting for batches to end"}
		}
	}
	return nil
}

// Close cancels all batches and ends all routes, tearing down what is still under way when ctx ends. It
// returns when no goroutine of the switchboard is left. Transports stay to be closed by the caller.
func (m *Multi) Close(ctx context.Context) {
	m.spawnMu.Lock()
	again := m.closed.Swap(true)
	m.spawnMu.Unlock()
	if again {
		return
	}
	for _, b := range m.batches.all() {
		b.Cancel()
	}
	m.mu.Lock()
	peers := m.allPeers()
	m.mu.Unlock()
	m.cancel()
	for _, p := range peers {
		for _, r := range p.dropAll(closedFault(xfer.StageSelect)) {
			r.quiesce(ctx, closedFault(xfer.StageClose))
		}
	}
	m.workers.Wait()
}

func closedFault(stage xfer.Stage) *xfer.Fault {
	return &xfer.Fault{Code: xfer.Closed, Stage: stage, Detail: "the engine is closed"}
}

func uninstalledFault(name string) *xfer.Fault {
	return &xfer.Fault{Code: xfer.Closed, Stage: xfer.StageSelect, Path: name, Retry: xfer.OtherRoute, Detail: "the transport was uninstalled",
		Next: "submit the request again: another transport may serve it"}
}

// refreshPause is the shortest time between two refreshes of one peer that requests cause.
const refreshPause = time.Second
