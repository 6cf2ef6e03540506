package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/selector"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

type explainCmd struct {
	Segment   string    `name:"segment" placeholder:"NAME" help:"The peer: HOST:PORT of its control port, as target prints it. Required, except with --last, which it limits to that segment."`
	Host      string    `name:"host" default:"127.0.0.1" help:"Address of the tool's own engine; it binds no other."`
	Last      lastFlag  `name:"last" help:"Show what the newest run of write, read, bench or target decided: all of it, or the last N events with --last N."`
	Op        opFlag    `name:"op" default:"write" help:"Operation: read or write."`
	Size      sizeFlag  `name:"size" default:"1MiB" help:"Length of the request."`
	Addr      *addrFlag `name:"addr" placeholder:"ADDR" help:"Ask about this address in the peer's memory, too."`
	Transport string    `name:"transport" placeholder:"NAME" help:"Ask for a request that insists on this transport."`
}

// Help is the part of the help that examples need.
func (*explainCmd) Help() string {
	return `Asks the code that also decides for real requests, and moves nothing. Paths are listed with their predicted
time, or with each reason against them: what it would take, what is there, and which side would have to change
something: the caller, this engine (here), the peer, the network, or the metadata.

Exits with 4 if no transport can be used.

With --last it shows what the newest run of write, read, bench or target has decided, which paths it opened and what
failed; that run has to have ended. Exits with 1 if there is none.

Examples:

    moonpath explain --segment 127.0.0.1:15123 --op write --size 64MiB
    moonpath explain --segment 127.0.0.1:15123 --size 4KiB --transport rdma --json
    moonpath explain --last
    moonpath explain --last 5 --json`
}

// Run prints the decision.
func (c *explainCmd) Run(a *app) error {
	if c.Last > 0 {
		return c.last(a)
	}
	if c.Segment == "" {
		return usage("explain", "--segment is missing: it is HOST:PORT of the peer's control port")
	}
	return a.withPeer(peerFlags{Segment: c.Segment, Host: c.Host}, func(p *peer) error {
		pin, err := p.pin(c.Transport)
		if err != nil {
			return err
		}
		d, err := c.ask(p, pin)
		if err != nil {
			return err
		}
		if err := a.emit(d, func(w io.Writer) { c.text(w, d) }); err != nil {
			return err
		}
		if d.Chosen < 0 {
			return &toolError{
				exit: exitNoTransport, code: xfer.NotSupportedTransport, stage: xfer.StageSelect, peer: p.name, side: d.Side,
				detail: "no transport can be used for this request, for the reasons above",
				next:   d.Next,
			}
		}
		return nil
	})
}

func (c *explainCmd) ask(p *peer, pin moonpath.Pin) (*selector.Decision, error) {
	if c.Addr == nil {
		return p.engine.Explain(p.id, moonpath.Op(c.Op), uint64(c.Size), pin)
	}
	return p.engine.ExplainRequest(moonpath.Request{Op: moonpath.Op(c.Op), Pin: pin, Len: uint64(c.Size), Target: p.id, Remote: uint64(*c.Addr)})
}

func (c *explainCmd) text(w io.Writer, d *selector.Decision) {
	fmt.Fprintf(w, "%s of %s to %s", d.Op, config.FormatSize(uint64(c.Size)), c.Segment)
	if c.Transport != "" {
		fmt.Fprintf(w, ", insisting on %s", c.Transport)
	}
	fmt.Fprintln(w)
	decisionText(w, d, "")
}

func decisionText(w io.Writer, d *selector.Decision, indent string) {
	for i, r := range d.Rows {
		name := pathName(r.Path, r.Rail)
		switch {
		case i == d.Chosen:
			fmt.Fprintf(w, "%schosen\t%s\t%s\n", indent, name, costText(r))
		case len(r.Rejected) == 0:
			fmt.Fprintf(w, "%spossible\t%s\t%s\n", indent, name, costText(r))
		default:
			fmt.Fprintf(w, "%srejected\t%s\t%s\n", indent, name, reasons(r.Rejected))
		}
	}
	for _, r := range d.Doubts {
		fmt.Fprintf(w, "%sdoubtful\tmemory\t%s; %s\n", indent, reasons([]transport.Reason{r}), r.Next)
	}
}

func costText(r selector.Explained) string {
	return fmt.Sprintf("predicted %v: set-up %v, %v per MiB (%s)", brief(r.Predicted), brief(r.Cost.Setup), brief(r.Cost.PerMiB), r.Cost.Origin)
}

func reasons(rs []transport.Reason) string {
	texts := make([]string, len(rs))
	for i, r := range rs {
		texts[i] = r.String()
		if r.Side != "" {
			texts[i] += " (side: " + string(r.Side) + ")"
		}
	}
	return strings.Join(texts, "; ")
}
