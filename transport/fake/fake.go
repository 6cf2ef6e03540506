package fake

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// Options say how a Transport behaves. With a name alone it is a path that completes everything at once.
type Options struct {
	Name string
	// Offers returns the rows towards a peer; nil is Usable(Cost), refused where the peer does not offer Name.
	Offers func(to *segment.Desc) []transport.Offer
	// Script is asked once about every chunk, right after it was taken, with no lock held; nil is Always(Done).
	Script func(c *transport.Chunk) Answer
	// Window is how many chunks a route holds at once, Piece how long one may be; 0 is no limit.
	Window int
	Piece  uint64
	// Dial is called before a route opens, and may block or fail; nil opens at once.
	Dial func(ctx context.Context, to transport.Peer) error
	// Attach is called before regions are attached, and may block or fail; nil attaches at once.
	Attach func(ctx context.Context, rs []*mem.Region) error
	// Unrecorded leaves out the records behind Taken and Repeat, so that nothing is allocated per chunk.
	Unrecorded bool
}

// Cost is what a path costs when its Options do not say.
var Cost = transport.Cost{Setup: 10 * time.Microsecond, PerMiB: 100 * time.Microsecond, Origin: "declared"}

// Transport is the fake. Its methods may be called from any goroutine.
type Transport struct {
	options Options

	mu       sync.Mutex // never held over a call into the engine or a function of the options
	routes   []*route   // in the order of dialling, ended ones too
	held     []held     // in the order of taking
	taken    []Taken
	returned []returned
	regions  map[xfer.RegionID]*mem.Region
	changed  chan struct{} // made by whoever waits, closed when held grows
	closed   bool
}

var _ transport.Transport = (*Transport)(nil)

// New returns a transport that behaves as o says.
func New(o Options) *Transport {
	if o.Script == nil {
		o.Script = Always(Done)
	}
	return &Transport{options: o, regions: make(map[xfer.RegionID]*mem.Region)}
}

// Factory returns a factory that is ready and opens t.
func Factory(t *Transport) transport.Factory {
	return transport.Factory{
		Name:    t.Name(),
		Summary: "answers as a test says and moves nothing",
		Probe:   func() transport.Availability { return transport.Availability{State: transport.Ready} },
		Open:    func(context.Context, transport.Env) (transport.Transport, error) { return t, nil },
	}
}

// Usable returns one row that both operations on host memory can use.
func Usable(c transport.Cost) transport.Offer {
	return transport.Offer{Local: []xfer.MemKind{xfer.HostMem}, Ops: transport.BothOps, Cost: c}
}

// Refused returns one row that cannot be used, for these reasons.
func Refused(reasons ...transport.Reason) transport.Offer {
	o := Usable(Cost)
	o.Refused = reasons
	return o
}

// Rows returns an Offers function that gives the same rows for every peer.
func Rows(rows ...transport.Offer) func(*segment.Desc) []transport.Offer {
	return func(*segment.Desc) []transport.Offer { return rows }
}

// Name implements transport.Transport.
func (t *Transport) Name() string { return t.options.Name }

// Offers implements transport.Transport.
func (t *Transport) Offers(to *segment.Desc, dst []transport.Offer) []transport.Offer {
	switch {
	case t.options.Offers != nil:
		return append(dst, t.options.Offers(to)...)
	case !to.Offers(t.options.Name):
		return append(dst, Refused(transport.Reason{Code: "protocol", Want: t.options.Name, Have: "not offered by the peer"}))
	}
	return append(dst, Usable(Cost))
}

// Describe adds the transport's name to the segment and to all its buffers.
func (t *Transport) Describe(d *segment.Desc) {
	d.Protocols = append(d.Protocols, t.options.Name)
	for i := range d.Buffers {
		d.Buffers[i].Protocols = append(d.Buffers[i].Protocols, t.options.Name)
	}
}

// Attach implements transport.Transport. A region that is attached already is an error.
func (t *Transport) Attach(ctx context.Context, rs []*mem.Region) error {
	if t.options.Attach != nil {
		if err := t.options.Attach(ctx, rs); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range rs {
		if t.regions[r.ID] != nil {
			return t.misused(xfer.AddressOverlapped, "region %d is attached already", r.ID)
		}
	}
	for _, r := range rs {
		t.regions[r.ID] = r
	}
	return nil
}

// Detach implements transport.Transport. A region that is not attached, or that a held chunk uses, is an error.
func (t *Transport) Detach(_ context.Context, rs []*mem.Region) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range rs {
		if t.regions[r.ID] != r {
			return t.misused(xfer.AddressNotRegistered, "region %d is not attached", r.ID)
		}
		if slices.ContainsFunc(t.held, func(h held) bool { return h.chunk.Local.Region == r }) {
			return t.misused(xfer.BatchBusy, "region %d is used by a chunk that is held", r.ID)
		}
	}
	for _, r := range rs {
		delete(t.regions, r.ID)
	}
	return nil
}

// Dial implements transport.Transport.
func (t *Transport) Dial(ctx context.Context, to transport.Peer, work transport.Source) (transport.Route, error) {
	if t.options.Dial != nil {
		if err := t.options.Dial(ctx, to); err != nil {
			return nil, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, t.misused(xfer.Closed, "dialled after Close")
	}
	r := &route{fake: t, index: len(t.routes), to: to, work: work, ended: make(chan struct{})}
	t.routes = append(t.routes, r)
	return r, nil
}

// Close implements transport.Transport. A route that is not quiesced is an error.
func (t *Transport) Close(context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if n := t.open(); n > 0 {
		return t.misused(xfer.BatchBusy, "closed with %d routes that are not quiesced", n)
	}
	return nil
}

// open counts the routes that have not ended; t.mu is held.
func (t *Transport) open() (n int) {
	for _, r := range t.routes {
		if !r.over {
			n++
		}
	}
	return n
}

func (t *Transport) misused(code xfer.Code, format string, args ...any) *xfer.Fault {
	return &xfer.Fault{Code: code, Stage: xfer.StageArgument, Path: t.options.Name, Detail: fmt.Sprintf(format, args...),
		Next: "correct the code that drives the transport"}
}
