package local

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// Name is the transport's name in pins and reports. It is never published: only this process can use it.
const Name = "local"

// engines lists the engines of this process by incarnation, which is how a description names its owner.
var engines sync.Map // uint64 → *Transport

// Factory describes the transport.
func Factory() transport.Factory {
	return transport.Factory{
		Name:    Name,
		Summary: "memory copies within this process",
		Probe:   func() transport.Availability { return transport.Availability{State: transport.Ready} },
		Open:    func(_ context.Context, env transport.Env) (transport.Transport, error) { return Open(env), nil },
	}
}

// Transport copies for one engine.
type Transport struct {
	env    transport.Env
	closed atomic.Bool // the engine's memory is not for others any more
}

var _ transport.Transport = (*Transport)(nil)

// Open makes the engine's memory reachable for the other engines of this process.
func Open(env transport.Env) *Transport {
	t := &Transport{env: env}
	engines.Store(env.Incarnation, t)
	return t
}

// Name implements transport.Transport.
func (t *Transport) Name() string { return Name }

// Offers implements transport.Transport: usable if the segment's owner is in this process.
func (t *Transport) Offers(to *segment.Desc, dst []transport.Offer) []transport.Offer {
	o := transport.Offer{
		Local: []xfer.MemKind{xfer.HostMem},
		Ops:   transport.BothOps,
		Cost:  transport.Cost{Setup: time.Microsecond, PerMiB: 110 * time.Microsecond, Origin: "declared"},
	}
	if owner(to) == nil {
		o.Refused = []transport.Reason{{Code: "process", Want: "an engine of this process", Have: name(to)}}
	}
	return append(dst, o)
}

func name(d *segment.Desc) string {
	if d.Ext == nil {
		return "a peer without incarnation"
	}
	return "incarnation " + strconv.FormatUint(d.Ext.Incarnation, 16)
}

// owner returns the transport of the engine that a description belongs to, or nil if it is not in this process.
func owner(d *segment.Desc) *Transport {
	if d.Ext == nil {
		return nil
	}
	t, here := engines.Load(d.Ext.Incarnation)
	if !here {
		return nil
	}
	return t.(*Transport)
}

// Describe implements transport.Transport; nothing is published.
func (t *Transport) Describe(*segment.Desc) {}

// Attach implements transport.Transport.
func (t *Transport) Attach(context.Context, []*mem.Region) error { return nil }

// Detach implements transport.Transport.
func (t *Transport) Detach(context.Context, []*mem.Region) error { return nil }

// Dial implements transport.Transport.
func (t *Transport) Dial(_ context.Context, to transport.Peer, work transport.Source) (transport.Route, error) {
	d := to.Desc()
	if t.closed.Load() {
		return nil, &xfer.Fault{Code: xfer.Closed, Stage: xfer.StageDial, Path: Name, Peer: d.Name, Detail: "the transport is closed"}
	}
	target := owner(d)
	if target == nil {
		return nil, &xfer.Fault{Code: xfer.Endpoint, Stage: xfer.StageDial, Path: Name, Peer: d.Name, Retry: xfer.Refresh, Detail: "the engine has left this process"}
	}
	return newRoute(work, target, d.Name, target == t), nil
}

// Close implements transport.Transport. Copies that other engines have begun are finished: they hold leases.
func (t *Transport) Close(context.Context) error {
	t.closed.Store(true)
	engines.Delete(t.env.Incarnation)
	return nil
}
