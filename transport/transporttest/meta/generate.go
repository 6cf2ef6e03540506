package meta

import (
	"math/rand/v2"
	"time"

	"github.com/moonpath-io/moonpath/xfer"
)

// Shape says what histories are like.
type Shape struct {
	Sizes   []int // of the slots of each side, in bytes
	MaxLen  int   // of a request
	Steps   int
	Batches int  // that are open at once
	Faults  bool // Freeze, Thaw and Cut occur
	// Failing says that requests may fail at any time; else those that nothing is in the way of have to complete.
	Failing bool
	// LooseReads says that the buffer of a read that did not complete may hold anything; else it holds what it held, or
	// what the read would have brought, byte by byte, and only the former if the read was refused.
	LooseReads bool
	// LooseWrites says that a write which failed without the remote state being unknown may have happened all the same,
	// but will not any more: it was sent again, and refused only then.
	LooseWrites bool
	// Patience bounds every wait: what has not ended by then never will. 0 is 20 s.
	Patience time.Duration
}

// generator makes one history.
type generator struct {
	Shape
	random  *rand.Rand
	open    []int // batches
	next    int
	frozen  bool
	present [2][]bool // slots that are registered
	steps   []Step
}

// Generate returns the history of a seed.
func (s Shape) Generate(seed uint64) History {
	g := &generator{Shape: s, random: rand.New(rand.NewPCG(seed, 0x6d657461))}
	for side := range g.present {
		g.present[side] = make([]bool, len(s.Sizes))
		for slot := range s.Sizes {
			if g.random.IntN(8) > 0 {
				g.register(Side(side), slot)
			}
		}
	}
	for len(g.steps) < s.Steps {
		g.step()
	}
	return History{Seed: seed, Steps: g.steps}
}

func (g *generator) add(s Step) { g.steps = append(g.steps, s) }

func (g *generator) step() {
	n := g.random.IntN(100)
	switch {
	case n < 35 && len(g.open) < g.Batches:
		g.submit()
	case n < 55 && len(g.open) > 0:
		at := g.random.IntN(len(g.open))
		g.settle(at)
	case n < 63 && len(g.open) > 0:
		g.add(Step{Kind: Cancel, Batch: g.open[g.random.IntN(len(g.open))]})
	case n < 73:
		s := Step{Kind: Do, Requests: []Request{g.request()}}
		if g.random.IntN(3) == 0 {
			s.Limit = time.Duration(1+g.random.IntN(500)) * time.Microsecond
		}
		g.add(s)
	case n < 81:
		g.register(Side(g.random.IntN(2)), g.random.IntN(len(g.Sizes)))
	case n < 86:
		g.add(Step{Kind: Pause, Limit: time.Duration(1+g.random.IntN(300)) * time.Microsecond})
	case n < 90 || !g.Faults:
		g.add(Step{Kind: Look})
	case n < 95:
		g.add(Step{Kind: Cut})
	case g.frozen:
		g.frozen = false
		g.add(Step{Kind: Thaw})
	default:
		g.frozen = true
		g.add(Step{Kind: Freeze})
	}
}

// register registers a slot, or unregisters one that is.
func (g *generator) register(side Side, slot int) {
	kind := Register
	if g.present[side][slot] {
		kind = Unregister
	}
	g.present[side][slot] = !g.present[side][slot]
	g.add(Step{Kind: kind, Side: side, Slot: slot})
}

func (g *generator) submit() {
	s := Step{Kind: Submit, Batch: g.next}
	for range 1 + g.random.IntN(6) {
		s.Requests = append(s.Requests, g.request())
	}
	g.open = append(g.open, g.next)
	g.next++
	g.add(s)
}

func (g *generator) settle(at int) {
	kind := Wait
	if g.random.IntN(4) == 0 {
		kind = CloseBatch
	}
	g.add(Step{Kind: kind, Batch: g.open[at]})
	g.open = append(g.open[:at], g.open[at+1:]...)
}

func (g *generator) request() Request {
	r := Request{Op: xfer.Op(g.random.IntN(2)), Local: Place{Slot: g.random.IntN(len(g.Sizes))}, Remote: Place{Slot: g.random.IntN(len(g.Sizes))}}
	most := min(g.MaxLen, g.Sizes[r.Local.Slot], g.Sizes[r.Remote.Slot])
	switch g.random.IntN(8) {
	case 0:
		r.Len = uint64(g.random.IntN(3)) // nothing, and next to it
	case 1, 2, 3:
		r.Len = uint64(g.random.IntN(min(most, 512) + 1))
	case 4, 5:
		r.Len = uint64(g.random.IntN(min(most, 32<<10) + 1))
	default:
		r.Len = uint64(g.random.IntN(most + 1))
	}
	r.Len = min(r.Len, uint64(most))
	r.Local.Off = uint64(g.random.IntN(g.Sizes[r.Local.Slot] - int(r.Len) + 1))
	r.Remote.Off = uint64(g.random.IntN(g.Sizes[r.Remote.Slot] - int(r.Len) + 1))
	return r
}
