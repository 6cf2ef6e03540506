package fault

//moonpath:goroutines

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// route stands between an engine's source and a transport's route. To the engine it is the route, to the transport the
// source; chunks have names of their own on the transport's side, so that one can be executed twice or in parts.
type route struct {
	plan *Plan
	path string
	to   *segment.Desc
	work transport.Source

	wakes  chan struct{} // one slot: the transport has to look for work
	ended  chan struct{} // closed by quit
	waker  sync.WaitGroup
	timers sync.WaitGroup

	mu        sync.Mutex // never held over a call into the engine or the transport
	inner     transport.Route
	closing   bool
	stalled   bool
	entries   map[transport.Ref]*entry // all that the engine has not got back
	slots     []slot
	free      []uint32
	ready     []*entry
	readySet  transport.QueueSet
	held      []*entry // by a Stall, on their way in
	answers   []*entry // by a Stall, on their way back
	reordered []*entry
}

var (
	_ transport.Route  = (*route)(nil)
	_ transport.Source = (*route)(nil)
)

func newRoute(p *Plan, path string, to *segment.Desc, work transport.Source) *route {
	r := &route{plan: p, path: path, to: to, work: work, wakes: make(chan struct{}, 1), ended: make(chan struct{}), entries: make(map[transport.Ref]*entry)}
	p.join(r)
	return r
}

func (r *route) opened(inner transport.Route) {
	r.mu.Lock()
	r.inner = inner
	r.mu.Unlock()
	r.waker.Go(func() {
		for {
			select {
			case <-r.wakes:
				inner.Kick()
			case <-r.ended:
				return
			}
		}
	})
}

// wake makes the transport look for work, in another goroutine: the caller may be the transport.
func (r *route) wake() {
	select {
	case r.wakes <- struct{}{}:
	default:
	}
}

// Kick implements transport.Route.
func (r *route) Kick() { r.inner.Kick() }

// Cancel implements transport.Route. What the plan holds comes back at once.
func (r *route) Cancel(refs []transport.Ref) {
	var back []transport.Completion
	var names []transport.Ref
	r.mu.Lock()
	for _, ref := range refs {
		if e := r.entries[ref]; e != nil {
			back = r.drop(e, xfer.Interrupted, back)
			names = append(names, r.names(e)...)
		}
	}
	back = r.reversed(back)
	r.mu.Unlock()
	r.give(back)
	if len(names) > 0 {
		r.inner.Cancel(names)
	}
}

// Quiesce implements transport.Route.
func (r *route) Quiesce(ctx context.Context) transport.Quietness {
	r.quit()
	return r.inner.Quiesce(ctx)
}

// quit gives back all that the transport does not have, and sees to it that the rest comes back as soon as it does.
func (r *route) quit() {
	var back []transport.Completion
	r.mu.Lock()
	first := !r.closing
	r.closing, r.stalled = true, false
	for _, e := range r.entries {
		back = r.drop(e, xfer.Closed, back)
	}
	r.mu.Unlock()
	if first {
		r.plan.leave(r)
		close(r.ended)
	}
	r.give(back)
	r.waker.Wait()
	r.timers.Wait()
}

// drop says that an entry is not wanted any more, and gives it back unless the transport has some of it; r.mu is held.
func (r *route) drop(e *entry, code xfer.Code, back []transport.Completion) []transport.Completion {
	e.wanted = false
	switch e.at {
	case passed:
		return back
	case ready:
		r.ready = slices.DeleteFunc(r.ready, func(o *entry) bool { return o == e })
		r.noteReady()
		e.at = passed
		if e.left -= e.chunk.Len - e.cut; e.done && e.cut == 0 {
			return append(back, r.end(e, r.truth(e))) // that it is not done once more is no failure
		}
		lost := r.torn(e, code)
		if e.left > 0 {
			e.fault, e.remote = lost.Fault, max(e.remote, lost.Remote)
			return back
		}
		return append(back, r.end(e, lost))
	case inHand:
		r.held = slices.DeleteFunc(r.held, func(o *entry) bool { return o == e })
		return append(back, r.end(e, r.torn(e, code)))
	}
	same := func(o *entry) bool { return o == e }
	r.answers, r.reordered = slices.DeleteFunc(r.answers, same), slices.DeleteFunc(r.reordered, same)
	if e.rule != nil && e.rule.Do == Drop {
		return append(back, r.end(e, r.torn(e, code))) // nobody heard the answer
	}
	return append(back, r.end(e, r.truth(e)))
}

// names lists what the transport has of an entry; r.mu is held.
func (r *route) names(e *entry) (refs []transport.Ref) {
	for i := range r.slots {
		if r.slots[i].of == e {
			refs = append(refs, transport.Ref{Slot: uint32(i), Gen: r.slots[i].gen})
		}
	}
	return refs
}

// later puts an entry aside for the time that its rule says; r.mu is held, and the route is not closing.
func (r *route) later(e *entry) {
	r.timers.Add(1)
	e.timer = time.AfterFunc(e.rule.Delay, func() {
		defer r.timers.Done()
		r.mu.Lock()
		var back []transport.Completion
		passOn := false
		switch {
		case r.entries[e.chunk.Ref] != e || !e.wanted: // since the timer fired
		case e.at == onTheWay && r.stalled:
			r.answers = append(r.answers, e)
		case e.at == onTheWay:
			back = append(back, r.end(e, r.truth(e)))
		case r.stalled:
			r.held = append(r.held, e)
		default:
			r.letGo(e)
			passOn = true
		}
		r.mu.Unlock()
		r.give(back)
		if passOn {
			r.wake()
		}
	})
}

// letGo makes an entry that was held available to the transport; r.mu is held.
func (r *route) letGo(e *entry) {
	e.at = ready
	r.ready = append(r.ready, e)
	r.noteReady()
}

func (r *route) stall() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stalled = !r.closing
}

func (r *route) resume() {
	var back []transport.Completion
	r.mu.Lock()
	r.stalled = false
	for _, e := range r.held {
		r.letGo(e)
	}
	answers := r.answers
	r.held, r.answers = nil, nil
	for _, e := range answers {
		back = r.returned(e, back)
	}
	back = r.reversed(back)
	r.mu.Unlock()
	r.give(back)
	r.wake()
}

// give hands completions to the engine; no lock is held.
func (r *route) give(back []transport.Completion) {
	if len(back) > 0 {
		r.work.Done(back)
	}
}

// end forgets an entry that c gives back; r.mu is held.
func (r *route) end(e *entry, c transport.Completion) transport.Completion {
	delete(r.entries, e.chunk.Ref)
	if e.timer != nil && e.timer.Stop() {
		r.timers.Done()
	}
	return c
}

// truth is what the transport said.
func (r *route) truth(e *entry) transport.Completion {
	return transport.Completion{Ref: e.chunk.Ref, Fault: e.fault, Remote: e.remote}
}

// torn is the completion of a chunk that the plan held to its end.
func (r *route) torn(e *entry, code xfer.Code) transport.Completion {
	remote := xfer.Confirmed
	if e.began && e.chunk.Op == xfer.Write {
		remote = xfer.Unknown
	}
	return transport.Completion{Ref: e.chunk.Ref, Remote: remote, Fault: &xfer.Fault{Code: code, Stage: xfer.StageComplete,
		Path: r.path, Peer: r.to.Name, Remote: remote, Detail: "held back by a plan of package fault"}}
}

// secondFailed is what an entry has to say whose first execution completed and whose second did not. A write of which
// nothing more will happen is done. A read is not: its buffer may hold some of both. Nor is it refused, for a buffer of a
// refused read holds nothing of it.
func (r *route) secondFailed(e *entry) *xfer.Fault {
	switch {
	case e.chunk.Op == xfer.Read:
		return &xfer.Fault{Code: xfer.Socket, Stage: xfer.StageComplete, Path: r.path, Peer: r.to.Name, Retry: e.fault.Retry,
			Detail: "the second execution that a plan of package fault asked for failed: " + e.fault.Error()}
	case e.remote == xfer.Confirmed:
		return nil
	}
	return e.fault
}

// failed is the completion that a Fail rule makes up.
func (r *route) failed(e *entry) transport.Completion {
	f := faultOf(e.rule.Fault, &xfer.Fault{Code: xfer.Socket, Stage: xfer.StageComplete, Path: r.path, Peer: r.to.Name, Retry: xfer.OtherRoute,
		Detail: "failed by a plan of package fault"})
	f.Remote = e.rule.Remote
	return transport.Completion{Ref: e.chunk.Ref, Remote: f.Remote, Fault: f}
}
