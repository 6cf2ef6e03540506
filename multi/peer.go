package multi

//moonpath:goroutines

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/selector"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// peer is one segment with its routes and its plans.
type peer struct {
	multi *Multi
	id    xfer.SegmentID
	seg   transport.Peer
	name  string

	view      atomic.Pointer[view]
	refreshed atomic.Int64 // when the last refresh began, Unix nanoseconds

	mu     sync.Mutex    // guards what follows; taken before a route's lock
	owner  *segment.Desc // that the routes lead to
	routes map[transport.Transport]*route
	gone   *xfer.Fault // why there are no new routes; nil: there are

	answers map[selector.Question]answer // the last of each
}

// answer is what is remembered of a decision, to see that the next one differs.
type answer struct {
	path string // and rail; "" if nothing was usable
	cost time.Duration
}

// view is an immutable snapshot: the paths to the peer under one description and one installation, with
// the plans that were made for them. Plans are filled in as they are needed.
type view struct {
	desc      *segment.Desc
	installed uint64
	sel       selector.View
	by        []transport.Transport // row → transport; nil where it is not installed
	plans     []planSet             // by pin
}

type planSet [2][selector.SizeClasses]atomic.Pointer[plan]

// plan is the answer for one question: a route, or the fault that says why there is none.
type plan struct {
	route    *route
	path     string
	rail     string
	reason   string
	fault    *xfer.Fault
	decision selector.Decision
}

func newPeer(m *Multi, id xfer.SegmentID, seg transport.Peer, name string) *peer {
	return &peer{multi: m, id: id, seg: seg, name: name, routes: make(map[transport.Transport]*route), answers: make(map[selector.Question]answer)}
}

// current returns the view for the newest description and installation.
func (p *peer) current() *view {
	v := p.view.Load()
	if v != nil && v.desc == p.seg.Desc() && v.installed == p.multi.installed.Load().gen {
		return v
	}
	return p.renew()
}

func (p *peer) renew() *view {
	p.mu.Lock()
	defer p.mu.Unlock()
	inst := p.multi.installed.Load()
	v := &view{desc: p.seg.Desc(), installed: inst.gen}
	if p.owner != nil && !p.owner.SameOwner(v.desc) {
		p.leaveOwner()
	}
	p.owner = v.desc
	v.sel.Gen = inst.gen<<32 | v.desc.Gen
	named := make(map[string]bool)
	for _, t := range inst.transports {
		named[t.Name()] = true
		pin := p.multi.pins.find(t.Name())
		for _, o := range t.Offers(v.desc, nil) {
			o.Refused = attributed(o.Refused)
			v.sel.Rows = append(v.sel.Rows, selector.Row{Path: t.Name(), Pin: pin, Offer: o})
			v.by = append(v.by, t)
		}
	}
	for _, name := range slices.Concat(v.desc.Protocols, p.multi.pins.all()) {
		if !named[name] {
			named[name] = true
			v.sel.Rows = append(v.sel.Rows, p.missing(v.desc, name))
			v.by = append(v.by, nil)
		}
	}
	v.plans = make([]planSet, len(p.multi.pins.all())+1)
	p.view.Store(v)
	return v
}

// leaveOwner ends the routes to an engine that was restarted or replaced; p.mu is held. What they still
// hold ends there: it names memory of the old engine.
func (p *peer) leaveOwner() {
	why := &xfer.Fault{Code: xfer.WrongPeer, Stage: xfer.StageSelect, Peer: p.name, Detail: "the peer was restarted or replaced before this was done"}
	p.multi.cfg.Events.Record(obs.Peer, p.name, "restarted or replaced: its description is of another engine, and routes to the old one end")
	for t, r := range p.routes {
		delete(p.routes, t)
		p.multi.spawnOrRun(func() { r.quiesce(p.multi.ctx, why) })
	}
}

// missing is the row of a transport that the peer offers or somebody asked for, and that is not installed.
func (p *peer) missing(d *segment.Desc, name string) selector.Row {
	// A name that only the peer knows gets no pin: peers could fill the table.
	row := selector.Row{Path: name, Pin: p.multi.pins.find(name)}
	row.Offer.Refused = []transport.Reason{notInstalled(name, p.multi.cfg.Absent(name), d.Offers(name))}
	if !d.Offers(name) {
		row.Offer.Refused = append(row.Offer.Refused, transport.Reason{Code: reasonProtocol, Want: name, Have: offered(d)})
	}
	row.Offer.Refused = attributed(row.Offer.Refused)
	return row
}

func offered(d *segment.Desc) string {
	text := "peer offers nothing"
	for i, name := range d.Protocols {
		if i == 0 {
			text = "peer offers " + name
		} else {
			text += ", " + name
		}
	}
	return text
}

// plan returns the plan for a question. A hit costs two loads.
func (p *peer) plan(v *view, q selector.Question) *plan {
	if int(q.Pin) >= len(v.plans) || q.Op > xfer.Write {
		return p.makePlan(v, q)
	}
	slot := &v.plans[q.Pin][q.Op][q.Size]
	if pl := slot.Load(); pl != nil {
		return pl
	}
	pl := p.makePlan(v, q)
	if pl.fault == nil || pl.fault.Code != xfer.Closed {
		slot.Store(pl)
	}
	return pl
}

func (p *peer) makePlan(v *view, q selector.Question) *plan {
	pl := new(plan)
	ranked := selector.Rank(&v.sel, q, nil, &pl.decision)
	if pl.decision.Pin == "" {
		pl.decision.Pin = p.multi.pins.name(q.Pin)
	}
	if len(ranked) == 0 {
		pl.fault = noRoute(p.name, &pl.decision)
		pl.decision.Side, pl.decision.Next = pl.fault.Side, pl.fault.NextStep()
	}
	if kind := p.compare(v, q, pl); kind != "" {
		p.multi.cfg.Events.RecordLike(kind, p.name, pl.decision.Path(), &pl.decision)
	}
	if pl.fault != nil {
		return pl
	}
	row := ranked[0].Row
	pl.path, pl.rail = v.sel.Rows[row].Path, v.sel.Rows[row].Offer.Rail
	pl.reason = reason(q, ranked, &pl.decision)
	r, err := p.route(v.by[row])
	if err != nil {
		pl.fault = err
		return pl
	}
	pl.route = r
	return pl
}

// compare says how an answer differs from the last one to the same question, as a kind of event; "" if it does not. A
// description that is fetched anew for another buffer has all questions asked again.
func (p *peer) compare(v *view, q selector.Question, pl *plan) (kind string) {
	if int(q.Pin) >= len(v.plans) {
		return obs.Decision // a pin of nobody's: not remembered, since there is no end of them
	}
	answer := answer{path: pl.decision.Path()}
	if answer.path != "" {
		answer.cost = pl.decision.Rows[pl.decision.Chosen].Predicted
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	last, seen := p.answers[q]
	p.answers[q] = answer
	switch {
	case seen && last.path == answer.path:
		return ""
	case seen && last.path != "" && (answer.path == "" || answer.cost > last.cost):
		return obs.Downgrade
	}
	return obs.Decision
}

func reason(q selector.Question, ranked []selector.Ranked, d *selector.Decision) string {
	switch {
	case q.Pin != xfer.NoPin:
		return "the request insists on it"
	case len(ranked) == 1:
		return "the only usable path"
	}
	return "predicted " + ranked[0].Cost.Round(time.Microsecond/10).String() + ", next best " + d.Rows[ranked[1].Row].Path + " " + ranked[1].Cost.Round(time.Microsecond/10).String()
}

// route returns the route over t, which is dialled when the first work comes.
func (p *peer) route(t transport.Transport) (*route, *xfer.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone != nil {
		return nil, p.gone
	}
	if !slices.Contains(p.multi.Installed(), t) { // since the view was made
		return nil, uninstalledFault(t.Name())
	}
	r := p.routes[t]
	if r == nil {
		r = newRoute(p, t)
		p.routes[t] = r
	}
	return r, nil
}

// drop takes the route over t out of the plans and returns it, or nil.
func (p *peer) drop(t transport.Transport) *route {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.routes[t]
	delete(p.routes, t)
	p.view.Store(nil)
	return r
}

// dropAll takes out all routes for good, because of why.
func (p *peer) dropAll(why *xfer.Fault) []*route {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = why
	var all []*route
	for _, r := range p.routes {
		all = append(all, r)
	}
	clear(p.routes)
	p.view.Store(nil)
	return all
}

// refreshSoon fetches the description anew in the background, because a request named memory that is not in it,
// or failed as it does when the description is old. The request that names unpublished memory goes on all the
// same: published engines serve memory that they have not published yet.
func (p *peer) refreshSoon() {
	now := time.Now().UnixNano()
	last := p.refreshed.Load()
	if now-last < int64(refreshPause) || !p.refreshed.CompareAndSwap(last, now) {
		return
	}
	p.multi.spawn(func() {
		if _, err := p.seg.Refresh(p.multi.ctx); err != nil {
			p.multi.cfg.Log.Debug("description not refreshed", "peer", p.name, "error", err)
		}
	})
}
