package fault

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
)

// Plan says what goes wrong. One plan may serve several transports and proxies, which then share its counts. Its
// methods may be called from any goroutine.
type Plan struct {
	seed uint64

	mu      sync.Mutex // never held over a call into anything else
	rules   []*counted
	events  []Event
	missed  int
	stalled bool
	members map[member]struct{}
}

// counted is a rule with what it has seen.
type counted struct {
	Rule
	seen, done int
}

// member is a route or a proxy of a plan.
type member interface {
	stall()
	resume()
}

// Rule is a ChunkRule, a DialRule or a StreamRule.
type Rule interface {
	when() When
	action() Action
	check() error
}

// When picks some of those that a rule fits: all of them, if it is zero.
type When struct {
	Skip   int     // the first of them are left alone
	Times  int     // how often the rule acts; 0: without limit
	Chance float64 // of acting, by the plan's seed; 0 and 1: always
}

func (w When) check() error {
	if w.Skip < 0 || w.Times < 0 || !(w.Chance >= 0 && w.Chance <= 1) {
		return fmt.Errorf("skip %d, times %d, chance %v: none may be negative, nor the chance above 1", w.Skip, w.Times, w.Chance)
	}
	return nil
}

// Event is one thing that a plan made go wrong.
type Event struct {
	Rule   int // index in the plan
	Action Action
	On     string // the chunk, the peer or the stream
}

// String returns the event in one line.
func (e Event) String() string { return fmt.Sprintf("rule %d: %s: %s", e.Rule, e.Action, e.On) }

// maxEvents bounds what a plan remembers.
const maxEvents = 4096

// NewPlan returns a plan, or an error that names the rule which makes no sense. Of several chunk or dial rules that
// would act at once the first does; stream rules all act, each at its place.
func NewPlan(seed uint64, rules ...Rule) (*Plan, error) {
	p := &Plan{seed: seed, members: make(map[member]struct{})}
	var errs []error
	for i, r := range rules {
		if err := errors.Join(r.when().check(), r.check()); err != nil {
			errs = append(errs, fmt.Errorf("fault: rule %d (%s): %w", i, r.action(), err))
		}
		p.rules = append(p.rules, &counted{Rule: r})
	}
	return p, errors.Join(errs...)
}

// Seed returns the seed, for messages of tests that fail.
func (p *Plan) Seed() uint64 { return p.seed }

// Events returns what was made to go wrong so far, and how many further events there were no room for.
func (p *Plan) Events() (events []Event, missed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Event(nil), p.events...), p.missed
}

// Stall stops every transport and proxy of the plan, and those that are still to come, until Resume.
func (p *Plan) Stall() { p.all(true, member.stall) }

// Resume lets go of everything that a Stall holds, in every transport and proxy of the plan.
func (p *Plan) Resume() { p.all(false, member.resume) }

func (p *Plan) all(stalled bool, do func(member)) {
	p.mu.Lock()
	p.stalled = stalled
	members := make([]member, 0, len(p.members))
	for m := range p.members {
		members = append(members, m)
	}
	p.mu.Unlock()
	for _, m := range members {
		do(m)
	}
}

func (p *Plan) join(m member) {
	p.mu.Lock()
	p.members[m] = struct{}{}
	stalled := p.stalled
	p.mu.Unlock()
	if stalled {
		m.stall()
	}
}

func (p *Plan) leave(m member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.members, m)
}

// picks asks a rule that fits whether it acts now; p.mu is held.
func (p *Plan) picks(i int, on fmt.Stringer) bool {
	r, w := p.rules[i], p.rules[i].when()
	r.seen++
	switch {
	case r.seen <= w.Skip, w.Times > 0 && r.done >= w.Times:
		return false
	case w.Chance > 0 && p.random(i, r.seen).Float64() >= w.Chance:
		return false
	}
	r.done++
	if len(p.events) == maxEvents {
		p.missed++
	} else {
		p.events = append(p.events, Event{Rule: i, Action: r.action(), On: on.String()})
	}
	return true
}

// random depends on the seed, the rule and the how manieth it is, and on nothing else.
func (p *Plan) random(rule, nth int) *rand.Rand {
	return rand.New(rand.NewPCG(p.seed, uint64(rule)<<40|uint64(nth)))
}

// first returns the first rule of kind R that fits and acts, or nil.
func first[R Rule](p *Plan, fits func(*R) bool, on fmt.Stringer) (rule *R, random *rand.Rand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range p.rules {
		if r, ok := c.Rule.(R); ok && fits(&r) && p.picks(i, on) {
			return &r, p.random(i, -c.seen)
		}
	}
	return nil, nil
}
