package transporttest

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
)

// Pair is what a case works on: two ends that can reach each other, and ways to hurt the target.
type Pair struct {
	Initiator End // dials
	Target    End // is dialled

	// Kill ends the target as the end of its process would: what is under way breaks off, and nobody answers any more.
	Kill func()
	// Freeze stops the target as a stopped process would: what is sent to it may pile up, nothing happens. Thaw goes on
	// from there. A case that freezes thaws before it ends.
	Freeze, Thaw func()
	// Restart ends the target and opens another engine in its place, which answers where the first one did and has
	// registered nothing yet. It returns the new end, and has closed the old one.
	Restart func() End
	// Close ends what was opened besides the two transports, such as a proxy between them. It is called once, after both
	// transports are closed, and may be nil.
	Close func()
}

// End is one engine, as far as a transport sees it.
type End struct {
	Transport transport.Transport
	Regions   *mem.Table // of transport.Env
	// Draft is what an engine puts into its description by itself, the transport's part and the buffers excepted: its
	// name, its host, its incarnation.
	Draft segment.Desc
}

// Capability is something that not every transport can do, so that Options may except it.
type Capability string

// The capabilities.
const (
	// Killing: the target can be killed while the initiator lives on (Pair.Kill).
	Killing Capability = "kill"
	// Freezing: the target can be stopped and continued (Pair.Freeze, Pair.Thaw), and Cancel and Quiesce get chunks back
	// meanwhile.
	Freezing Capability = "freeze"
	// StallLimit: chunks towards a frozen target come back by themselves, within Options.Patience.
	StallLimit Capability = "stall limit"
	// Restarting: the target can be replaced (Pair.Restart), and a route to the old one never reaches the new one.
	Restarting Capability = "restart"
	// ZeroAllocation: in steady state nothing is allocated per chunk, at either end.
	ZeroAllocation Capability = "zero allocation"
)

var capabilities = []Capability{Killing, Freezing, StallLimit, Restarting, ZeroAllocation}

// Options say what to expect of the transport. The zero Options expect everything.
type Options struct {
	// Without lists the capabilities that the transport does not have, each with the reason. Cases that need one are
	// skipped, and the reason is printed. Without is for what a transport is not made for; a case that fails is a defect.
	Without map[Capability]string
	// Goroutines and Files bound what one route may use, both ends together; 0 means 16.
	Goroutines, Files int
	// Patience bounds everything that has to happen soon, such as the end of a request; 0 means 20 seconds.
	Patience time.Duration
}

func (o Options) withDefaults() Options {
	if o.Goroutines == 0 {
		o.Goroutines = 16
	}
	if o.Files == 0 {
		o.Files = 16
	}
	if o.Patience == 0 {
		o.Patience = 20 * time.Second
	}
	return o
}

// complaints lists what is wrong with the options themselves.
func (o Options) complaints() (all []string) {
	for _, c := range slices.Sorted(maps.Keys(o.Without)) {
		if !slices.Contains(capabilities, c) {
			all = append(all, fmt.Sprintf("Options.Without names %q, which is no capability; there are %q", c, capabilities))
		}
		if o.Without[c] == "" {
			all = append(all, fmt.Sprintf("Options.Without excepts %q without a reason; say why the transport does not have it", c))
		}
	}
	return all
}

// complaints lists where hooks and options do not fit each other.
func (p *Pair) complaints(opt Options, needs []Capability) (all []string) {
	for c, there := range map[Capability]bool{Killing: p.Kill != nil, Freezing: p.Freeze != nil && p.Thaw != nil, Restarting: p.Restart != nil} {
		_, excepted := opt.Without[c]
		switch {
		case excepted && there:
			all = append(all, fmt.Sprintf("the Pair has a hook to %s its target, and Options.Without says that it cannot; take one of the two away", c))
		case !there && slices.Contains(needs, c):
			all = append(all, fmt.Sprintf("the Pair has no hook to %s its target; give it one, or say in Options.Without[%q] why there is none", c, c))
		}
	}
	return all
}

// Run runs every case as a subtest, named group/demand, each on a Pair of its own. open may call t.Cleanup and
// t.Fatal; the suite closes both transports before the cleanups run.
func Run(t *testing.T, open func(t *testing.T) Pair, opt Options) {
	t.Helper()
	opt = opt.withDefaults()
	for _, complaint := range opt.complaints() {
		t.Error(complaint)
	}
	for _, c := range slices.Sorted(maps.Keys(opt.Without)) {
		t.Logf("without %s: %s", c, opt.Without[c])
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					perform(t, c, g.name, opt, func() Pair { return open(t) })
				})
			}
		})
	}
}
