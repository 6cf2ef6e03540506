package tcp

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// Name is the protocol's name.
const Name = "tcp"

// Factory describes the transport. It needs nothing but the kernel, so it is always ready.
func Factory() transport.Factory {
	return transport.Factory{
		Name:     Name,
		Summary:  "TCP connections to any Mooncake or moonpath engine",
		Settings: config.TCP,
		Probe:    func() transport.Availability { return transport.Availability{State: transport.Ready} },
		Open:     func(ctx context.Context, env transport.Env) (transport.Transport, error) { return Open(ctx, env) },
	}
}

// Transport is the TCP data path of one engine.
type Transport struct {
	env     transport.Env
	opt     options
	log     *slog.Logger
	count   counters
	accept  *acceptor
	watcher watcher

	mu     sync.Mutex // guards routes and closed
	routes map[*route]struct{}
	closed bool
}

var _ transport.Transport = (*Transport)(nil)

// counters add up over all peers; lanes have their own.
type counters struct {
	dials, refusedDials, brokenLanes, resent            *obs.Counter
	served, servedBytes, rejected, sessions, turnedAway *obs.Counter
}

// Open binds the data port and serves it. The port is env.Port, or one of the configured range that is free.
func Open(_ context.Context, env transport.Env) (*Transport, error) {
	g := env.Obs
	t := &Transport{env: env, opt: resolve(env.Settings), log: env.Log, routes: make(map[*route]struct{}), count: counters{
		dials: g.Counter("dials"), refusedDials: g.Counter("dials_failed"), brokenLanes: g.Counter("lanes_broken"), resent: g.Counter("chunks_resent"),
		served: g.Counter("requests_served"), servedBytes: g.Counter("bytes_served"), rejected: g.Counter("requests_rejected"),
		sessions: g.Counter("sessions"), turnedAway: g.Counter("sessions_refused"),
	}}
	a, err := listen(t)
	if err != nil {
		return nil, err
	}
	t.accept = a
	t.watcher.start(t)
	return t, nil
}

// Name implements transport.Transport.
func (t *Transport) Name() string { return Name }

// Port is the bound data port.
func (t *Transport) Port() int { return t.accept.port }

// Describe adds the data endpoint. The host was filled in by the engine, which knows what peers can reach.
func (t *Transport) Describe(d *segment.Desc) {
	d.Protocols = append(d.Protocols, Name)
	d.TCP.Port = uint16(t.accept.port)
	d.TCP.Version = 2
	if d.Ext != nil {
		d.Ext.HelloVersion = int(tcpframe.HelloVersion)
	}
	for i := range d.Buffers {
		d.Buffers[i].Protocols = append(d.Buffers[i].Protocols, Name)
	}
}

// Offers implements transport.Transport: one row, usable if the peer serves TCP at a known endpoint.
func (t *Transport) Offers(to *segment.Desc, dst []transport.Offer) []transport.Offer {
	o := transport.Offer{
		Local: []xfer.MemKind{xfer.HostMem},
		Ops:   transport.BothOps,
		Cost:  transport.Cost{Setup: 40 * time.Microsecond, PerMiB: 280 * time.Microsecond, Origin: "declared"},
	}
	switch {
	case !to.Offers(Name):
		o.Refused = append(o.Refused, transport.Reason{Code: "protocol", Want: Name, Have: "not offered by the peer"})
	case to.TCP.Port == 0:
		o.Refused = append(o.Refused, transport.Reason{Code: "endpoint", Want: "tcp_data_port above 0", Have: "0"})
	case to.TCP.Host == "":
		o.Refused = append(o.Refused, transport.Reason{Code: "endpoint", Want: "a data host", Have: "none in the descriptor, none in the segment name"})
	}
	return append(dst, o)
}

// Attach implements transport.Transport; sockets need no registration of memory.
func (t *Transport) Attach(context.Context, []*mem.Region) error { return nil }

// Detach implements transport.Transport.
func (t *Transport) Detach(context.Context, []*mem.Region) error { return nil }

// Close stops accepting and ends all sessions; an exchange that is under way is finished unless ctx ends.
func (t *Transport) Close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.accept.close(ctx)
	t.watcher.stop()
	return nil
}

func (t *Transport) add(r *route) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.routes[r] = struct{}{}
	return true
}

func (t *Transport) remove(r *route) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.routes, r)
}

// all lists the open routes.
func (t *Transport) all() []*route {
	t.mu.Lock()
	defer t.mu.Unlock()
	rs := make([]*route, 0, len(t.routes))
	for r := range t.routes {
		rs = append(rs, r)
	}
	return rs
}

func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
