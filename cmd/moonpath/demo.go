package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/selector"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

const (
	demoBound  = 60 * time.Second
	demoBuffer = 128 << 20 // on both sides
)

type demoCmd struct{}

// Help is the part of the help that examples need.
func (*demoCmd) Help() string {
	return `Starts a second process of this program as target, and with it: writes 1 byte to 64 MiB, reads them back and
compares; mixes requests to the peer and to the own memory in one batch; shows how a wrong address is refused while
its neighbours complete; probes and notifies. Then it prints which path each batch took, why, and what was
rejected, and how fast it is. Takes some seconds, needs no network and leaves nothing behind.

Examples:

    moonpath demo
    moonpath demo --json`
}

// demo is a run under way.
type demo struct {
	app    *app
	child  *child
	engine *moonpath.Engine
	peer   *peer
	memory *moonpath.Memory
	remote uint64 // address of the target's buffer
	start  time.Time
	result demoResult
}

// demoResult is what --json prints.
type demoResult struct {
	Engine    string             `json:"engine"` // its segment
	Target    string             `json:"target"` // the other process's
	Steps     []demoStep         `json:"steps"`
	Batches   []demoBatch        `json:"batches"`
	Decision  *selector.Decision `json:"decision"` // for a write of 1 MiB
	Rates     []*benchResult     `json:"rates"`
	RatesNote string             `json:"rates_note,omitempty"` // why some are missing
	Seconds   float64            `json:"seconds"`
	OK        bool               `json:"ok"`
}

// demoStep is one thing that was tried, and what came of it.
type demoStep struct {
	Name    string  `json:"name"`
	OK      bool    `json:"ok"`
	Detail  string  `json:"detail"`
	Seconds float64 `json:"seconds"`
}

// demoBatch is the report of one batch.
type demoBatch struct {
	Name   string           `json:"name"`
	Report *moonpath.Report `json:"report"`
}

// Run shows everything once.
func (*demoCmd) Run(a *app) error {
	bounded := *a
	var cancel context.CancelFunc
	bounded.ctx, cancel = context.WithTimeout(a.ctx, demoBound)
	defer cancel()
	d := &demo{app: &bounded, start: time.Now()}
	d.say("Two engines on this host\n")
	err := d.steps()
	if d.child != nil {
		err = errors.Join(err, d.step("end", (*demo).end))
	}
	d.result.Seconds, d.result.OK = time.Since(d.start).Seconds(), err == nil
	if errors.Is(bounded.ctx.Err(), context.DeadlineExceeded) && err != nil {
		err = &toolError{
			exit: exitFailed, code: xfer.Deadline, stage: "demo",
			detail: fmt.Sprintf("the demo did not finish within %v; it was at: %s", demoBound, describe(err).Detail),
			next:   "run it again when this host is less busy",
		}
	}
	if a.common.JSON {
		return errors.Join(a.emit(&d.result, nil), err)
	}
	if err == nil {
		d.say("\nSkipped: %s.\n", strings.Join(d.skipped(), "; "))
		d.say("Everything that was written came back unchanged; took %.1f s.\n", d.result.Seconds)
	}
	return err
}

// skipped says what a demo on this host did not show, and why.
func (*demo) skipped() []string {
	reasons := make(map[string][]string)
	var order []string
	for _, t := range moonpath.KnownTransports() {
		if t.Availability.State == transport.Ready {
			continue
		}
		why := string(t.Availability.State) + ", " + t.Availability.Code
		if reasons[why] == nil {
			order = append(order, why)
		}
		reasons[why] = append(reasons[why], t.Name)
	}
	if len(order) == 0 {
		return []string{"nothing"}
	}
	for i, why := range order {
		order[i] = "transfers over " + strings.Join(reasons[why], ", ") + " (" + why + "; moonpath info says more)"
	}
	return order
}

func (d *demo) steps() error {
	for _, s := range demoSteps {
		if err := d.step(s.name, s.do); err != nil {
			return err
		}
	}
	if err := d.explain(); err != nil {
		return err
	}
	return d.rates()
}

// step does one thing and records what came of it.
func (d *demo) step(name string, do func(*demo) (string, error)) error {
	line := d.app.progress(0, "%s", name)
	start := time.Now()
	detail, err := do(d)
	line.end()
	mark := "ok"
	if err != nil {
		mark, detail = "FAILED", err.Error()
	}
	d.result.Steps = append(d.result.Steps, demoStep{name, err == nil, detail, time.Since(start).Seconds()})
	d.say("  %-6s  %-32s  %s\n", mark, name, detail)
	return err
}

// say prints for people as things happen; with --json the result comes at the end, in one piece.
func (d *demo) say(format string, args ...any) {
	if !d.app.common.JSON {
		fmt.Fprintf(d.app.stdout, format, args...)
	}
}

// table prints aligned columns for people.
func (d *demo) table(title string, text func(io.Writer)) {
	if d.app.common.JSON {
		return
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	text(w)
	w.Flush()
	d.say("\n%s\n%s", title, b.String())
}

// explain prints the path of each batch, and why a request would take which.
func (d *demo) explain() error {
	d.table("The path of each batch, and why", func(w io.Writer) { pathTable(w, d.result.Batches) })
	decision, err := d.engine.Explain(d.peer.id, moonpath.OpWrite, 1<<20, 0)
	if err != nil {
		return err
	}
	d.result.Decision = decision
	d.table("A write of 1MiB to the other process", func(w io.Writer) { decisionText(w, decision, "  ") })
	return nil
}

const (
	demoRate      = 200 * time.Millisecond // time to measure each rate
	demoRatesTill = 10 * time.Second       // no further rate is measured after that, so that a busy host keeps the bound
)

// rates measures a few typical sizes.
func (d *demo) rates() error {
	cells := []layout{{block: 4 << 10, batch: 64}, {block: 64 << 10, batch: 16}, {block: 1 << 20, batch: 8}, {block: 16 << 20, batch: 4}}
	line := d.app.progress(0, "measuring")
	defer line.end()
	for _, op := range []moonpath.Op{moonpath.OpWrite, moonpath.OpRead} {
		for _, l := range cells {
			if time.Since(d.start) > demoRatesTill {
				d.result.RatesNote = "this host is busy: the other rates were left out to end in time"
				break
			}
			l.threads, l.local, l.remote = 1, demoBuffer, demoBuffer
			m := measurement{peer: d.peer, op: op, layout: l, memory: d.memory, remote: d.remote, duration: demoRate}
			r, err := m.run(d.app.ctx)
			if err == nil {
				err = r.err
			}
			if err != nil {
				return err
			}
			d.result.Rates = append(d.result.Rates, r)
		}
	}
	line.end()
	d.table(fmt.Sprintf("Rates, %v each on a host that may be busy with other things", demoRate), func(w io.Writer) {
		ratesTable(w, d.result.Rates, "  ")
		if d.result.RatesNote != "" {
			fmt.Fprintf(w, "  %s\n", d.result.RatesNote)
		}
	})
	return nil
}

// end closes the engine and lets the other process drain and exit.
func (d *demo) end() (string, error) {
	var closing error
	if d.engine != nil {
		closing = d.engine.Close()
	}
	if err := errors.Join(closing, d.child.stop()); err != nil {
		return "", err
	}
	return "own engine closed, target drained and exited with 0", nil
}

func sizeText(n uint64) string {
	if n < 1<<10 || n%(1<<10) != 0 {
		return fmt.Sprintf("%d B", n)
	}
	return config.FormatSize(n)
}
