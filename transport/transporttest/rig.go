package transporttest

//moonpath:goroutines

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// guide is where a failure sends its reader.
const guide = "docs/how-to/write-a-transport.md"

// rig is one case under way.
type rig struct {
	testing.TB
	demands string
	group   string
	opt     Options
	before  residue

	pair      Pair
	peer      peer
	offered   []xfer.Op
	near, far *arena
	arenas    []*arena
	sources   []*source
	tasks     []*task
	made      uint32
	frozen    bool
	closed    bool // the case has closed the transports itself
}

// peer is the opened segment of the target. A refresh finds what was published last.
type peer struct{ desc, last atomic.Pointer[segment.Desc] }

func (p *peer) Desc() *segment.Desc { return p.desc.Load() }

func (p *peer) Refresh(context.Context) (*segment.Desc, error) {
	p.desc.Store(p.last.Load())
	return p.Desc(), nil
}

// perform runs one case from the opening of its pair to the look at what is left.
func perform(t testing.TB, c testCase, group string, opt Options, open func() Pair) {
	t.Helper()
	for _, need := range c.needs {
		if reason := opt.Without[need]; reason != "" {
			t.Skipf("the transport is declared to be without %s: %s", need, reason)
		}
	}
	x := &rig{TB: t, demands: c.demands, group: group, opt: opt, before: remains()}
	x.pair = open()
	defer x.finish()
	for _, complaint := range x.pair.complaints(opt, c.needs) {
		t.Fatal(complaint)
	}
	x.near = x.memory("initiator's", &x.pair.Initiator, arenaBytes, false)
	x.far = x.memory("target's", &x.pair.Target, arenaBytes, true)
	x.publish()
	x.ops()
	c.run(x)
}

// fail reports what happened instead of what is demanded. Any goroutine may call it.
func (x *rig) fail(format string, args ...any) {
	x.Helper()
	x.Error(x.story(format, args...))
}

// fatal ends the case, too; the case's own goroutine calls it.
func (x *rig) fatal(format string, args ...any) {
	x.Helper()
	x.Fatal(x.story(format, args...))
}

func (x *rig) story(format string, args ...any) string {
	return fmt.Sprintf("demanded: %s\nhappened: %s\nread more: %s#%s", x.demands, fmt.Sprintf(format, args...), guide, x.group)
}

// describe is the target's description as its engine would publish it now.
func (x *rig) describe() *segment.Desc { return x.pair.Target.describe() }

// publish makes it the description of the opened segment.
func (x *rig) publish() {
	x.peer.last.Store(x.describe())
	x.peer.desc.Store(x.peer.last.Load())
}

func (e *End) describe() *segment.Desc {
	d := e.Draft
	d.Protocols = slices.Clone(d.Protocols)
	if d.Ext != nil {
		ext := *d.Ext
		d.Ext = &ext
	}
	for r := range e.Regions.All() {
		if r.Remote {
			d.Buffers = append(d.Buffers, segment.Buffer{Addr: uint64(r.Addr), Len: r.Len, Location: r.Location})
		}
	}
	e.Transport.Describe(&d)
	return &d
}

// published reports whether one buffer of the description holds a range.
func (x *rig) published(addr, n uint64) bool {
	b := x.peer.Desc().Find(addr)
	return b != nil && n <= b.Len-(addr-b.Addr)
}

// dial opens a route to the target.
func (x *rig) dial() *source {
	x.Helper()
	s := newSource(x)
	x.open(s)
	return s
}

func (x *rig) open(s *source) {
	x.Helper()
	r, err := x.pair.Initiator.Transport.Dial(x.Context(), &x.peer, s)
	if err != nil {
		x.fatal("Dial to a target that is there: %v", err)
	}
	s.route = r
	x.sources = append(x.sources, s)
}

// ended is a context that is over.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// shortly is a context with the case's patience.
func (x *rig) shortly() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), x.opt.Patience)
}

// within runs something that has to return soon.
func (x *rig) within(what string, f func()) {
	x.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(x.opt.Patience):
		x.fatal("%s did not return within %v", what, x.opt.Patience)
	}
}

// until waits for a condition that no channel tells of.
func (x *rig) until(what string, holds func() bool) {
	x.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(x.opt.Patience); !holds(); <-tick.C {
		if time.Now().After(limit) {
			x.fatal("within %v it did not come about that %s", x.opt.Patience, what)
		}
	}
}

func (x *rig) freeze() {
	x.frozen = true
	x.pair.Freeze()
}

func (x *rig) thaw() {
	if x.frozen {
		x.frozen = false
		x.pair.Thaw()
	}
}

// finish ends everything, waits until nothing moves any more, and looks at what is left. It also runs when the case
// has given up; then it cleans up, and says nothing about what is left.
func (x *rig) finish() {
	x.Helper()
	x.thaw()
	ctx, cancel := x.shortly()
	defer cancel()
	for _, s := range x.sources {
		s.close()
		done := make(chan struct{})
		go func() {
			defer close(done)
			if !s.over() {
				s.promised(s.route.Quiesce(ctx))
			}
		}()
		select {
		case <-done:
		case <-time.After(x.opt.Patience + time.Second):
			x.fail("Quiesce at the end of the case did not return")
			return
		}
	}
	if !x.closed {
		x.closeBoth()
	}
	if x.pair.Close != nil {
		x.pair.Close()
	}
	quiet := x.atRest()
	if !x.Failed() && quiet {
		x.examine()
	}
	if quiet {
		for _, a := range x.arenas {
			if err := a.mapping.Free(); err != nil {
				x.Errorf("memory of the test was not freed: %v", err)
			}
		}
	}
}

func (x *rig) closeBoth() {
	x.Helper()
	x.closeEnd(&x.pair.Initiator)
	x.closeEnd(&x.pair.Target)
}

func (x *rig) closeEnd(e *End) {
	x.Helper()
	ctx, cancel := x.shortly()
	defer cancel()
	if err := e.Transport.Close(ctx); err != nil {
		x.fail("Close of %s after all routes were quiesced: %v", e.Draft.Name, err)
	}
}

// atRest waits until no goroutine and no descriptor is left that was not there before.
func (x *rig) atRest() bool {
	x.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.Now().Add(x.opt.Patience)
	for {
		left := remains().beyond(x.before)
		if left == "" {
			return true
		}
		if time.Now().After(limit) {
			x.fail("after both transports were closed there is still, %v later:\n%s", x.opt.Patience, left)
			return false
		}
		<-tick.C
	}
}

// examine looks at memory and leases, when nothing moves any more.
func (x *rig) examine() {
	x.Helper()
	for _, k := range x.tasks {
		if k.quick {
			continue
		}
		if wrong := k.aftermath(); wrong != "" {
			x.fail("%s", wrong)
		}
	}
	for _, a := range x.arenas {
		if off, changed := a.overrun(); changed {
			x.fail("byte %d of the %s memory was changed; no request names it", off, a.name)
		}
		if n := a.region.InUse(); n != 0 {
			x.fail("%d leases of the %s memory were not given back", n, a.name)
		}
	}
}

// refusedWith checks that a task failed with a code, and did nothing.
func (x *rig) refusedWith(code xfer.Code, k *task) {
	x.Helper()
	switch {
	case k.fault == nil:
		x.fail("the %s was done", k)
	case k.fault.Code != code:
		x.fail("the %s failed with %s (%v), want %s", k, k.fault.Code.Name(), k.fault, code.Name())
	}
}

// leases checks that the memory is not in use, which is so soon after the last Done.
func (x *rig) leases(r *mem.Region) {
	x.until("the leases of the target's memory are given back", func() bool { return r.InUse() == 0 })
}

var both = []xfer.Op{xfer.Write, xfer.Read}

// ops are the operations that the transport offers towards the target while that is well.
func (x *rig) ops() []xfer.Op {
	x.Helper()
	if x.offered == nil {
		x.offered = x.look()
	}
	return x.offered
}

func (x *rig) look() (all []xfer.Op) {
	x.Helper()
	for _, o := range x.pair.Initiator.Transport.Offers(x.peer.Desc(), nil) {
		for _, op := range both {
			if len(o.Refused) == 0 && o.Ops.Has(op) && !slices.Contains(all, op) {
				all = append(all, op)
			}
		}
	}
	if len(all) == 0 {
		x.fatal("the transport offers no operation towards a target that is there: %+v", x.pair.Initiator.Transport.Offers(x.peer.Desc(), []transport.Offer{}))
	}
	return all
}
