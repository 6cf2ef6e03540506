package fault

import (
	"context"
	"time"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// wrapped is a transport whose dials and chunks go wrong as a plan says.
type wrapped struct {
	transport.Transport
	plan *Plan
}

// Wrap returns t with what the plan does to dials and chunks. It has the name, the offers and the part of the
// description of t.
func Wrap(t transport.Transport, p *Plan) transport.Transport { return &wrapped{t, p} }

// Factory returns f so that what it opens is wrapped.
func Factory(f transport.Factory, p *Plan) transport.Factory {
	open := f.Open
	f.Open = func(ctx context.Context, env transport.Env) (transport.Transport, error) {
		t, err := open(ctx, env)
		if err != nil {
			return nil, err
		}
		return Wrap(t, p), nil
	}
	return f
}

// Dial implements transport.Transport.
func (w *wrapped) Dial(ctx context.Context, to transport.Peer, work transport.Source) (transport.Route, error) {
	rule, _ := first(w.plan, func(*DialRule) bool { return true }, onPeer{to.Desc()})
	if rule != nil {
		if err := w.misdial(ctx, rule, to); err != nil {
			return nil, err
		}
	}
	r := newRoute(w.plan, w.Name(), to.Desc(), work)
	inner, err := w.Transport.Dial(ctx, to, r)
	if err != nil {
		r.quit()
		return nil, err
	}
	r.opened(inner)
	return r, nil
}

func (w *wrapped) misdial(ctx context.Context, rule *DialRule, to transport.Peer) error {
	var over <-chan time.Time
	switch rule.Do {
	case Fail:
		return faultOf(rule.Fault, &xfer.Fault{Code: xfer.Socket, Stage: xfer.StageDial, Path: w.Name(), Peer: to.Desc().Name, Detail: "the plan fails this dial"})
	case Delay:
		timer := time.NewTimer(rule.Delay)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return &xfer.Fault{Code: xfer.Interrupted, Stage: xfer.StageDial, Path: w.Name(), Peer: to.Desc().Name, Cause: context.Cause(ctx), Detail: "the plan holds this dial"}
	}
}

func faultOf(wanted, otherwise *xfer.Fault) *xfer.Fault {
	if wanted == nil {
		return otherwise
	}
	f := *wanted
	return &f
}
