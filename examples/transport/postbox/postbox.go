package postbox

//moonpath:goroutines

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// Name is the transport's name in pins and reports.
const Name = "postbox"

// boxes lists the transports of this process by the incarnation of their engines.
var boxes sync.Map // uint64 → *Transport

// Transport has a box for letters and a clerk who carries them out.
type Transport struct {
	env    transport.Env
	box    chan letter // without room, so that a letter is with its sender or with the clerk
	closed chan struct{}
	once   sync.Once
	clerk  sync.WaitGroup
}

// letter asks for one chunk to be moved.
type letter struct {
	chunk transport.Chunk
	from  *route
}

var _ transport.Transport = (*Transport)(nil)

// Open makes an engine reachable for the others of its process.
func Open(env transport.Env) *Transport {
	t := &Transport{env: env, box: make(chan letter), closed: make(chan struct{})}
	t.clerk.Go(t.serve)
	boxes.Store(env.Incarnation, t)
	return t
}

// Name implements transport.Transport.
func (t *Transport) Name() string { return Name }

// Offers implements transport.Transport: one row, and the reason if it cannot be used.
func (t *Transport) Offers(to *segment.Desc, dst []transport.Offer) []transport.Offer {
	o := transport.Offer{
		Local: []xfer.MemKind{xfer.HostMem},
		Ops:   transport.BothOps,
		Cost:  transport.Cost{Setup: 5 * time.Microsecond, PerMiB: 200 * time.Microsecond, Origin: "declared"},
	}
	if find(to) == nil {
		o.Refused = []transport.Reason{{Code: "process", Want: "an engine of this process", Have: "a segment of another one"}}
	}
	return append(dst, o)
}

func find(d *segment.Desc) *Transport {
	if d.Ext == nil {
		return nil
	}
	t, here := boxes.Load(d.Ext.Incarnation)
	if !here {
		return nil
	}
	return t.(*Transport)
}

// Describe implements transport.Transport. The incarnation is all that peers need, and that is there.
func (t *Transport) Describe(*segment.Desc) {}

// Attach implements transport.Transport; copies need no registration.
func (t *Transport) Attach(context.Context, []*mem.Region) error { return nil }

// Detach implements transport.Transport.
func (t *Transport) Detach(context.Context, []*mem.Region) error { return nil }

// Dial implements transport.Transport.
func (t *Transport) Dial(_ context.Context, to transport.Peer, work transport.Source) (transport.Route, error) {
	d := to.Desc()
	select {
	case <-t.closed:
		return nil, fault(xfer.Closed, xfer.StageDial, d.Name, "the transport is closed")
	default:
	}
	target := find(d)
	if target == nil {
		return nil, fault(xfer.Endpoint, xfer.StageDial, d.Name, "its engine has left this process")
	}
	return newRoute(target, d.Name, work), nil
}

// Close implements transport.Transport. Letters that the clerk has are answered first.
func (t *Transport) Close(context.Context) error {
	t.once.Do(func() {
		boxes.Delete(t.env.Incarnation)
		close(t.closed)
	})
	t.clerk.Wait()
	return nil
}

// serve is the clerk.
func (t *Transport) serve() {
	defer mem.ExpectFaults()() // memory of others may be unmapped under a copy
	for {
		select {
		case l := <-t.box:
			l.from.answers <- transport.Completion{Ref: l.chunk.Ref, Fault: t.carryOut(&l)}
		case <-t.closed:
			return
		}
	}
}

// carryOut moves a chunk; nil means that its bytes are at their destination.
func (t *Transport) carryOut(l *letter) *xfer.Fault {
	c := &l.chunk
	refused := func(why string) *xfer.Fault {
		return fault(xfer.Refused, xfer.StageComplete, l.from.peer, fmt.Sprintf("%s: %s of %d bytes at %#x", why, c.Op, c.Len, c.Remote))
	}
	lease, err := t.env.Regions.Acquire(xfer.Addr(c.Remote), c.Len)
	if err != nil {
		return refused("no registration holds the range")
	}
	defer lease.Release(1)
	if !lease.Region.Remote {
		return refused("the memory is not for peers")
	}
	to, from := lease.View(c.Remote-uint64(lease.Region.Addr), c.Len), c.Memory()
	if c.Op == xfer.Read {
		to, from = from, to
	}
	if _, err := mem.Copy(to, from); err != nil {
		f := fault(xfer.Memory, xfer.StageComplete, l.from.peer, "")
		f.Cause = err
		return f
	}
	return nil
}

func fault(code xfer.Code, stage xfer.Stage, peer, detail string) *xfer.Fault {
	return &xfer.Fault{Code: code, Stage: stage, Path: Name, Peer: peer, Detail: detail}
}
