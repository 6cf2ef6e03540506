package transporttest

import (
	"bytes"
	"context"
	"os"
	"sync/atomic"

	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// workDefects break what takers promise.
var workDefects = []defect{
	{"looks for one chunk after a kick", "pressure/one kick for all", "did not end", func(b *broken) { b.ration(1) }},
	{"stops after a hundred chunks", "pressure/one kick for all", "did not end", func(b *broken) { b.ration(100) }},
	{"forgets a kick while it is busy", "pressure/kick of a taker that goes idle", "did not end", func(b *broken) {
		var busy atomic.Bool
		b.hidden = true // else the local transport looks once more and finds it
		b.kick = func(r *tapRoute) {
			if busy.CompareAndSwap(false, true) {
				r.Route.Kick()
				busy.Store(false)
			}
		}
	}},
	{"forgets work that came before the dial", "pressure/work before dial", "did not end", func(b *broken) {
		b.kick = func(r *tapRoute) {
			if r.kicks++; r.kicks > 1 {
				r.Route.Kick()
			}
		}
	}},
	{"gives a chunk back after quiesce", "quiesce/under traffic", "are still out", func(b *broken) {
		b.keepOne()
	}},
	{"writes to the target after it was quiet", "quiesce/with an ended context", "nothing more would happen", func(b *broken) {
		var late []func()
		b.take = func(s *tap, w transport.Want, dst []transport.Chunk) int {
			n := s.Source.Take(w, dst)
			if n > 0 && dst[n-1].Op == xfer.Write && len(late) == 0 {
				n--
				c, data := dst[n], bytes.Clone(dst[n].Memory())
				s.Source.Done([]transport.Completion{{Ref: c.Ref, Fault: &xfer.Fault{Code: xfer.Closed}}})
				late = append(late, func() { copy(b.far(&c), data) })
			}
			return n
		}
		b.close = func(ctx context.Context) error {
			for _, write := range late {
				write()
			}
			return b.Transport.Close(ctx)
		}
	}},
	{"takes after quiesce", "quiesce/takes nothing after", "were taken after", func(b *broken) {
		b.kick = func(r *tapRoute) {
			r.Route.Kick()
			var c [1]transport.Chunk
			if r.over.Load() && r.tap.Source.Take(anything, c[:]) == 1 {
				r.tap.Source.Done([]transport.Completion{{Ref: c[0].Ref, Fault: &xfer.Fault{Code: xfer.Closed}}})
			}
		}
	}},
	{"waits for ever in quiesce", "quiesce/with an ended context", "did not return", func(b *broken) {
		b.quiesce = func(r *tapRoute, ctx context.Context) transport.Quietness {
			<-b.release
			return r.Route.Quiesce(ctx)
		}
	}},
	{"takes a promise back", "quiesce/twice", "then", func(b *broken) {
		b.quiesce = func(r *tapRoute, ctx context.Context) transport.Quietness {
			q := r.Route.Quiesce(ctx)
			if r.over.Swap(true) {
				q = transport.Unquiet
			}
			return q
		}
	}},
	{"ends its other routes, too", "quiesce/one of two routes", "did not end", func(b *broken) {
		b.quiesce = func(r *tapRoute, ctx context.Context) transport.Quietness {
			for _, other := range b.routes {
				other.Route.Quiesce(ctx)
			}
			return transport.Quiet
		}
	}},
	{"answers a cancel of what it does not have", "cancel/unknown chunks", "which is not out", func(b *broken) {
		b.cancel = func(r *tapRoute, refs []transport.Ref) {
			for _, ref := range refs {
				r.tap.Source.Done([]transport.Completion{{Ref: ref, Fault: &xfer.Fault{Code: xfer.Interrupted}}})
			}
		}
	}},
	{"starts a goroutine per chunk", "load/bounded", "goroutines; Options.Goroutines allows", func(b *broken) {
		b.before = func(b *broken, _ *transport.Chunk) { go func() { <-b.release }() }
	}},
	{"leaks a goroutine", "load/nothing is left", "goroutine", func(b *broken) {
		b.dial = func(context.Context) error { go func() { <-b.release }(); return nil }
	}},
	{"leaks a descriptor", "load/nothing is left", "descriptor", func(b *broken) {
		b.dial = func(context.Context) error {
			f, err := os.Open(os.DevNull)
			b.leaked = append(b.leaked, f)
			return err
		}
	}},
	{"leaks a lease", "load/nothing is left", "leases", func(b *broken) {
		b.before = func(b *broken, c *transport.Chunk) { c.Local.More(1) }
	}},
	{"wears out", "load/hours in seconds", "did not end", func(b *broken) { b.wear(5000) }},
	{"allocates", "allocation/chunks of 64 bytes", "allocations per", func(b *broken) {
		b.before = func(b *broken, _ *transport.Chunk) { b.garbage = new([64]byte) }
	}},
	{"takes one chunk for the last", "pressure/one chunk per take", "did not end", func(b *broken) {
		var rest atomic.Bool
		b.kick = func(r *tapRoute) { rest.Store(false); r.Route.Kick() }
		b.take = func(s *tap, w transport.Want, dst []transport.Chunk) int {
			if rest.Load() {
				return 0
			}
			n := s.Source.Take(w, dst)
			rest.Store(n == 1)
			return n
		}
	}},
	{"gives up after a kick without work", "pressure/kick without work", "did not end", func(b *broken) {
		b.kick = func(r *tapRoute) {
			if r.kicks++; r.kicks == 1 {
				r.Route.Kick()
			}
		}
	}},
	{"falls asleep", "pressure/many submitters", "did not end", func(b *broken) { b.wear(100) }},
	{"falls asleep between requests", "pressure/one at a time", "did not end", func(b *broken) { b.wear(100) }},
	{"promises nothing", "quiesce/idle", "not quiet", func(b *broken) {
		b.quiesce = func(r *tapRoute, ctx context.Context) transport.Quietness {
			r.Route.Quiesce(ctx)
			return transport.Unquiet
		}
	}},
	{"waits for work that never came", "quiesce/never used", "did not return", func(b *broken) {
		b.quiesce = func(r *tapRoute, ctx context.Context) transport.Quietness {
			<-b.release
			return r.Route.Quiesce(ctx)
		}
	}},
	{"keeps a chunk among kicks", "quiesce/among kicks", "are still out", func(b *broken) { b.keepOne() }},
	{"lets one caller of quiesce return", "quiesce/by several at once", "did not return", func(b *broken) {
		b.quiesce = func(r *tapRoute, ctx context.Context) transport.Quietness {
			if r.over.Swap(true) {
				<-b.release
			}
			return r.Route.Quiesce(ctx)
		}
	}},
	{"cancels neighbours", "cancel/what is out", "failed", func(b *broken) {
		b.cancel = func(r *tapRoute, _ []transport.Ref) { b.fails(xfer.Interrupted); r.Route.Kick() }
		b.take = func(s *tap, w transport.Want, dst []transport.Chunk) int {
			if b.failing.Load() == 0 {
				return 0 // all of them are still to come
			}
			return s.Source.Take(w, dst)
		}
	}},
	{"answers the second cancel", "cancel/twice", "never handed out", func(b *broken) {
		b.cancel = func(r *tapRoute, _ []transport.Ref) {
			if r.kicks++; r.kicks == 2 {
				r.tap.Source.Done([]transport.Completion{{Ref: transport.Ref{Slot: 1 << 20}}})
			}
		}
	}},
	{"keeps canceled chunks of a frozen target", "cancel/towards a frozen target", "did not come about", func(b *broken) {
		b.cancel = func(*tapRoute, []transport.Ref) {}
	}},
	{"serves its first route only", "load/many routes", "did not end", func(b *broken) {
		var first atomic.Pointer[tapRoute]
		b.kick = func(r *tapRoute) {
			if first.CompareAndSwap(nil, r) || first.Load() == r {
				r.Route.Kick()
			}
		}
	}},
}

var anything = transport.Want{Bytes: 1 << 30, Piece: 1 << 30, Queues: transport.Set(transport.Small, transport.Bulk, transport.Suspect)}
