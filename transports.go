package moonpath

import (
	"context"
	"fmt"
	"slices"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/all"
	"github.com/moonpath-io/moonpath/xfer"
)

// TransportInfo describes a transport as seen from here.
type TransportInfo struct {
	Name         string                 `json:"name"`
	Summary      string                 `json:"summary"`
	Availability transport.Availability `json:"availability"`
	Installed    bool                   `json:"installed"`
}

// KnownTransports lists every protocol name that is known, with whether it could be installed on this host
// and why not. It needs no engine.
func KnownTransports() []TransportInfo {
	var infos []TransportInfo
	for _, k := range all.Protocols() {
		infos = append(infos, TransportInfo{Name: k.Name, Summary: k.Summary, Availability: all.Availability(k.Name)})
	}
	return infos
}

// Transports lists every protocol name that is known, as it is for this engine.
func (e *Engine) Transports() []TransportInfo {
	infos := KnownTransports()
	for i := range infos {
		infos[i].Installed = slices.ContainsFunc(e.multi.Installed(), func(t transport.Transport) bool { return t.Name() == infos[i].Name })
		if !infos[i].Installed {
			infos[i].Availability = e.absent(infos[i].Name)
		}
	}
	return infos
}

// forcedTCP says that MC_FORCE_TCP is set: everything between processes goes over TCP.
func (e *Engine) forcedTCP(name string) bool {
	return e.settings.Bool("transport.force_tcp") && name != "tcp" && name != "local"
}

// absent says why a protocol is not installed in this engine.
func (e *Engine) absent(name string) transport.Availability {
	a := all.Availability(name)
	if e.forcedTCP(name) && a.State == transport.Ready {
		a = transport.Availability{State: transport.Absent, Code: "configured-off", Reason: "transport.force_tcp (MC_FORCE_TCP) allows tcp only", Next: "unset MC_FORCE_TCP"}
	}
	return a
}

// InstallTransport opens a transport and makes it available to requests submitted from now on. Memory that
// is registered is attached to it. Installing a name twice returns the one that is there, as in Mooncake.
// args are Mooncake's: no transport of this version takes any. A protocol that cannot be had is
// NotSupportedTransport, and the error says why.
func (e *Engine) InstallTransport(protocol string, args ...string) (transport.Transport, error) {
	if err := e.checkOpen(); err != nil {
		return nil, err
	}
	return e.install(context.Background(), protocol)
}

func (e *Engine) install(ctx context.Context, name string) (transport.Transport, error) {
	e.installMu.Lock()
	defer e.installMu.Unlock()
	if t, err := e.GetTransport(name); err == nil {
		return t, nil
	}
	if a := e.absent(name); a.State != transport.Ready {
		return nil, &xfer.Fault{Code: xfer.NotSupportedTransport, Stage: xfer.StageSelect, Path: name, Detail: string(a.State) + ": " + a.Reason, Next: a.Next}
	}
	i := slices.IndexFunc(all.Factories(), func(f transport.Factory) bool { return f.Name == name })
	t, err := all.Factories()[i].Open(ctx, transport.Env{
		Regions: &e.regions, Incarnation: e.incarnation, Bind: e.options.Bind, Port: e.options.DataPort,
		Settings: e.settings, Log: e.log.With("transport", name), Obs: e.counters.Group(name), Changed: e.changed,
	})
	if err != nil {
		return nil, err
	}
	if err := e.multi.Install(ctx, t); err != nil {
		return nil, fmt.Errorf("%w (closing it: %v)", err, t.Close(ctx))
	}
	return t, e.publish(ctx)
}

// changed is told that a transport's offers or its part of the description changed.
func (e *Engine) changed() {
	e.multi.Changed()
	if err := e.publish(context.Background()); err != nil {
		e.log.Warn("description not published", "error", err)
	}
}

// GetTransport returns an installed transport.
func (e *Engine) GetTransport(protocol string) (transport.Transport, error) {
	for _, t := range e.multi.Installed() {
		if t.Name() == protocol {
			return t, nil
		}
	}
	return nil, &xfer.Fault{Code: xfer.NotSupportedTransport, Stage: xfer.StageSelect, Path: protocol, Detail: "the transport is not installed", Next: "call InstallTransport first"}
}

// UninstallTransport takes a transport out: new requests are planned without it, those under way are
// finished, and inbound service ends. What has not come to an end within the transfer timeout is torn down.
// The local transport stays: it is how an engine reaches its own memory.
func (e *Engine) UninstallTransport(protocol string) error {
	if err := e.checkOpen(); err != nil {
		return err
	}
	if protocol == "local" {
		return &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageSelect, Path: protocol, Detail: "the local transport is part of the engine", Next: "pin requests to another transport instead"}
	}
	ctx, cancel := e.bounded(context.Background(), 0)
	defer cancel()
	t, err := e.multi.Uninstall(ctx, protocol)
	if err != nil {
		return err
	}
	if err := e.publish(ctx); err != nil {
		return err
	}
	return t.Close(ctx)
}

// Pin returns what makes a request insist on a transport. The name need not be installed: a request that
// insists on what is not there fails and says why.
func (e *Engine) Pin(protocol string) (Pin, error) {
	if protocol == "" {
		return NoPin, nil
	}
	if !slices.ContainsFunc(all.Protocols(), func(k all.Known) bool { return k.Name == protocol }) {
		return NoPin, &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageArgument, Detail: fmt.Sprintf("no transport has the name %q", protocol), Next: "run moonpath info to see the names"}
	}
	return e.multi.Pin(protocol), nil
}

// Explain answers which path a request would take now, and why the others would not be taken. Nothing is sent.
func (e *Engine) Explain(target SegmentID, op Op, size uint64, pin Pin) (*Decision, error) {
	if err := e.checkOpen(); err != nil {
		return nil, err
	}
	return e.multi.Explain(target, op, size, pin)
}

// ExplainRequest is Explain for a whole request: the decision's Doubts say what speaks against the memory that it names.
// A request whose Local is 0 is asked about the peer's memory only.
func (e *Engine) ExplainRequest(r Request) (*Decision, error) {
	if err := e.checkOpen(); err != nil {
		return nil, err
	}
	return e.multi.ExplainRequest(&r)
}
