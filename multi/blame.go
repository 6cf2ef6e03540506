package multi

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// A transport knows that the peer refused, or that nobody answered. What follows compares that with what the peer has
// said about itself, so that the error names the disagreement and not only its symptom.

// blamed completes the fault of a piece. It runs for failures only, with the lock of the route held.
func (r *route) blamed(f *xfer.Fault, p *piece) *xfer.Fault {
	if f.Code != xfer.Refused || f.Side != "" {
		return f
	}
	t := p.task
	why := remoteReason(r.peer.seg.Desc(), r.name, t.req.Remote, t.req.Len)
	if p.queue != transport.Suspect { // the description had it when the request was planned
		why = transport.Reason{Code: reasonDescription, Want: "memory that the peer described", Have: "refused now: unregistered since, or the peer registers other ranges than it publishes",
			Side: xfer.SideMetadata, Next: "the description is being fetched anew: ask the peer where its memory is now, then submit again"}
	}
	if why.Code == "" {
		return f
	}
	g := *f
	g.Detail += "; " + why.String()
	g.Side, g.Next = why.Side, why.Next
	return &g
}

// remoteReason says what a description has against a range over a path; the zero Reason if nothing. A range may lie in
// several buffers that follow each other.
func remoteReason(d *segment.Desc, path string, remote, n uint64) transport.Reason {
	for at, end := remote, remote+n; at < end; {
		b := d.Find(at)
		if b == nil {
			return transport.Reason{Code: reasonRemote, Want: fmt.Sprintf("%#x + %d in memory that the peer publishes", remote, n), Have: surroundings(d, remote, at),
				Side: xfer.SideCaller, Next: "correct address and length, or register the memory at the peer for remote access: moonpath segment NAME lists what it publishes"}
		}
		if !served(d, b, path) {
			return transport.Reason{Code: reasonBuffer, Want: fmt.Sprintf("the buffer at %#x served over %s", b.Addr, path), Have: over(b.Protocols),
				Side: xfer.SidePeer, Next: "register the memory at the peer with a transport that both have"}
		}
		if b.Len-(at-b.Addr) >= end-at {
			break
		}
		at = b.Addr + b.Len
	}
	return transport.Reason{}
}

// served reports whether the owner says that a buffer can be reached over a path. What is never published, such as
// copies within the process, is not a matter of the description.
func served(d *segment.Desc, b *segment.Buffer, path string) bool {
	if len(b.Protocols) == 0 && d.Ext == nil {
		return true // it does not say
	}
	return slices.Contains(b.Protocols, path) || !d.Offers(path)
}

func over(protocols []string) string {
	if len(protocols) == 0 {
		return "served over nothing"
	}
	return "served over " + strings.Join(protocols, ", ") + " only"
}

// surroundings describes what is published where a range leaves it; at is the first byte that is not.
func surroundings(d *segment.Desc, remote, at uint64) string {
	if at > remote {
		return fmt.Sprintf("%d bytes of it, then a gap", at-remote)
	}
	nearest := d.Nearest(at)
	if nearest == nil {
		return "no buffer at all"
	}
	return fmt.Sprintf("%#x + %d as the nearest of %d", nearest.Addr, nearest.Len, len(d.Buffers))
}

// answering is what segment.Peer knows about its lookups.
type answering interface {
	Answered() (last time.Time, err error)
}

// unreachable completes the fault of a dial with what is known about the peer's control port: "the key is there, the
// data cannot come back" and "the peer is gone" are different disagreements.
func (r *route) unreachable(f *xfer.Fault) *xfer.Fault {
	a, ok := r.peer.seg.(answering)
	if !ok || f.Stage != xfer.StageDial || f.Side != "" {
		return f
	}
	g := *f
	var dns *net.DNSError
	switch {
	case f.Code == xfer.DNS && errors.As(f.Cause, &dns):
		g.Side, g.Next = xfer.SidePeer, "the peer announces a data host that this host cannot resolve: correct its host setting (moonpath segment NAME shows it)"
		return &g
	case f.Code != xfer.Socket && f.Code != xfer.Deadline, f.OutOfFiles():
		return f
	}
	last, err := a.Answered()
	if err != nil {
		g.Detail += "; control: want an answer from its control port, have none either"
		g.Next = "start the peer, or correct the way to it: moonpath probe NAME"
		if f.Code == xfer.Deadline && xfer.ErrnoOf(err) != syscall.ECONNREFUSED {
			g.Side = xfer.SideNetwork // neither port says no: nothing comes back at all
		}
		return &g
	}
	g.Detail += "; control: its control port answered " + time.Since(last).Round(time.Millisecond).String() + " ago"
	if f.Code == xfer.Deadline {
		g.Side, g.Next = xfer.SideNetwork, "open the data port in whatever filters between the two, or give the peer a data host that is reachable from here: moonpath segment NAME shows host and port"
	} else if f.Errno() == syscall.ECONNREFUSED {
		g.Next = "nobody listens at the data port that the peer announces: restart the peer, or correct its data port (moonpath segment NAME shows it)"
	}
	return &g
}
