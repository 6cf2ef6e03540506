package transporttest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// endDefects break what is promised when something ends or fails.
var endDefects = []defect{
	{"charges neighbours", "failure/one bad among good, suspected", "failed", func(b *broken) {
		b.done = func(s *tap, cs []transport.Completion) {
			for i := range cs {
				if f := cs[i].Fault; f != nil {
					for j := range cs {
						cs[j].Fault = f
					}
				}
			}
			s.Source.Done(cs)
		}
	}},
	{"keeps what a dead target does not answer", "failure/target killed after 0 requests", "did not end", keepsDead},
	{"touches memory that was unregistered", "failure/memory unregistered under traffic", "no request names it", func(b *broken) {
		var known []*mem.Region
		b.describe = func(*segment.Desc) { known = slices.Collect(b.target.All()) }
		b.before = func(b *broken, c *transport.Chunk) {
			for _, r := range known {
				if b.far(c) == nil && r.Contains(xfer.Addr(c.Remote), c.Len) {
					r.Bytes()[c.Remote-uint64(r.Addr)] = 1
				}
			}
		}
	}},
	{"fails a second close", "lifecycle/close twice", "closed already", func(b *broken) {
		var closed bool
		b.close = func(ctx context.Context) error {
			if closed {
				return errors.New("closed already")
			}
			closed = true
			return b.Transport.Close(ctx)
		}
	}},
	{"dials although its context has ended", "lifecycle/dial with an ended context", "did not return", func(b *broken) {
		b.dial = func(ctx context.Context) error {
			if ctx.Err() != nil {
				<-b.release
			}
			return nil
		}
	}},
	{"dials once", "lifecycle/dial again", "only once", func(b *broken) {
		b.dial = func(context.Context) error {
			if len(b.routes) > 0 {
				return errors.New("only once")
			}
			return nil
		}
	}},
	{"does not say which peer", "explain/refused memory", "the peer is", func(b *broken) { b.faults(func(f *xfer.Fault) { f.Peer = "" }) }},
	{"does not say which path", "explain/lost memory", "the path is", func(b *broken) { b.faults(func(f *xfer.Fault) { f.Path = "" }) }},
	{"does not say where", "explain/a killed target", "no stage", func(b *broken) { b.faults(func(f *xfer.Fault) { f.Stage = "" }) }},
	{"fails a dial with a bare error", "explain/a target that has left", "no *xfer.Fault", func(b *broken) {
		b.dial = func(context.Context) error { return errors.New("no") }
	}},
	{"charges neighbours of what is not published", "failure/one bad among good, published", "failed", chargesNeighbours},
	{"charges neighbours of lost memory", "failure/local memory that is not mapped", "failed", chargesNeighbours},
	{"does not notice lost memory", "failure/remote memory that is not mapped", "its memory is not there", func(b *broken) {
		b.done = func(s *tap, cs []transport.Completion) {
			for i := range cs {
				cs[i].Fault = nil
			}
			s.Source.Done(cs)
		}
	}},
	{"keeps what it was about to send to a dead target", "failure/target killed under traffic", "did not end", keepsDead},
	{"waits for a dead target in quiesce", "failure/target killed, then quiesce", "did not return", func(b *broken) {
		b.quiesce = func(r *tapRoute, ctx context.Context) transport.Quietness {
			<-b.release
			return r.Route.Quiesce(ctx)
		}
	}},
	{"gives up on a short standstill", "failure/target frozen and thawed", "failed", func(b *broken) {
		b.thawed = func(*tap, *transport.Chunk) *xfer.Fault { return &xfer.Fault{Code: xfer.Deadline} }
	}},
	{"writes at the thaw what it had given back", "failure/quiesce towards a target frozen after 0 requests", "nothing more would happen", func(b *broken) { b.haunts = true }},
	{"waits for ever for a frozen target", "failure/a target that stays frozen", "did not end", func(b *broken) { b.patient = true }},
	{"calls certain what may still happen", "failure/a target that stays frozen", "nothing more would happen", func(b *broken) { b.haunts = true }},
	{"serves a route to an earlier life", "failure/target restarted", "although nobody was there", func(b *broken) {
		b.done = func(s *tap, cs []transport.Completion) {
			for i := range cs {
				cs[i].Fault = nil
			}
			s.Source.Done(cs)
		}
	}},
	{"writes for an earlier life and fails", "failure/target restarted", "was carried out by the new life", func(b *broken) {
		b.before = func(b *broken, c *transport.Chunk) {
			if c.Op == xfer.Write {
				copy(b.far(c), c.Memory())
			}
		}
	}},
	{"fails to close", "lifecycle/close", "no", func(b *broken) {
		b.close = func(ctx context.Context) error { return errors.Join(b.Transport.Close(ctx), errors.New("no")) }
	}},
	{"fails to close when unused", "lifecycle/close of an unused transport", "unused", func(b *broken) {
		b.close = func(ctx context.Context) error {
			err := b.Transport.Close(ctx)
			if len(b.routes) == 0 {
				err = errors.New("unused")
			}
			return err
		}
	}},
	{"does not say that it is closed", "lifecycle/dial after close", "it said", func(b *broken) {
		b.dial = func(context.Context) error { return errors.New("no") }
	}},
	{"looks for a target that has left for ever", "lifecycle/dial of a target that has left", "did not return", func(b *broken) {
		b.dial = func(context.Context) error { <-b.release; return nil }
	}},
	{"attaches no memory later", "lifecycle/memory that comes later", "Attach of", func(b *broken) {
		b.attach = func([]*mem.Region) error {
			if len(b.routes) > 0 {
				return errors.New("too late")
			}
			return nil
		}
	}},
	{"detaches nothing", "lifecycle/memory that goes and comes", "Detach of", func(b *broken) {
		b.detach = func([]*mem.Region) error { return errors.New("never") }
	}},
	{"cannot attach nothing", "lifecycle/attach all or none", "Attach of 0", func(b *broken) {
		b.attach = func(rs []*mem.Region) error {
			if len(rs) == 0 {
				return errors.New("nothing")
			}
			return nil
		}
	}},
	{"has no name after close", "lifecycle/offers after close", "did not return", func(b *broken) {
		var closed atomic.Bool
		b.close = func(ctx context.Context) error { closed.Store(true); return b.Transport.Close(ctx) }
		b.name = func() string {
			if closed.Load() {
				<-b.release
			}
			return "local"
		}
	}},
	{"does not say which peer was quiesced", "explain/a quiesced route", "the peer is", func(b *broken) { b.faults(func(f *xfer.Fault) { f.Peer = "" }) }},
	{"does not say which peer a canceled request was for", "explain/a canceled request", "the peer is", func(b *broken) { b.faults(func(f *xfer.Fault) { f.Peer = "" }) }},
	{"does not say which peer is frozen", "explain/a frozen target", "the peer is", func(b *broken) { b.faults(func(f *xfer.Fault) { f.Peer = "" }) }},
}

func chargesNeighbours(b *broken) {
	b.done = func(s *tap, cs []transport.Completion) {
		for i := range cs {
			if f := cs[i].Fault; f != nil {
				for j := range cs {
					cs[j].Fault = f
				}
			}
		}
		s.Source.Done(cs)
	}
}

func keepsDead(b *broken) {
	b.done = func(s *tap, cs []transport.Completion) {
		for _, c := range cs {
			if c.Fault == nil || c.Fault.Code != xfer.Endpoint {
				s.Source.Done([]transport.Completion{c})
			}
		}
	}
}
