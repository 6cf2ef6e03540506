package transporttest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// defects are transports that break one promise each, and the case that has to notice.
var defects = []struct {
	name    string
	noticed string // group/case
	says    string // in its message
	put     func(b *broken)
}{
	{"completes twice", "completion/exactly once", "which is not out", func(b *broken) {
		b.done = func(s *tap, cs []transport.Completion) { s.Source.Done(cs); s.Source.Done(cs) }
	}},
	{"completes what nobody handed out", "completion/exactly once", "never handed out", func(b *broken) {
		b.done = func(s *tap, cs []transport.Completion) {
			s.Source.Done(cs)
			s.Source.Done([]transport.Completion{{Ref: transport.Ref{Slot: 1 << 20}}})
		}
	}},
	{"loses a chunk", "completion/exactly once", "did not end", func(b *broken) {
		b.done = func(s *tap, cs []transport.Completion) {
			if s.seen.Add(1) == 5 {
				cs = cs[1:]
			}
			s.Source.Done(cs)
		}
	}},
	{"completes before the data is there", "completion/data before done", "was not", func(b *broken) {
		b.take = func(s *tap, w transport.Want, dst []transport.Chunk) int {
			n := s.Source.Take(w, dst)
			for _, c := range dst[:n] {
				s.Source.Done([]transport.Completion{{Ref: c.Ref}})
			}
			return n
		}
		b.done = func(*tap, []transport.Completion) {}
	}},
	{"claims to be done and not to know it", "completion/data before done", "unknown remote state", func(b *broken) {
		b.done = func(s *tap, cs []transport.Completion) {
			for i := range cs {
				cs[i].Remote = xfer.Unknown
			}
			s.Source.Done(cs)
		}
	}},
	{"writes to local memory after done", "completion/local memory is quiet", "after it had been given back", func(b *broken) {
		b.after = func(_ *broken, c *transport.Chunk) { c.Memory()[c.Len/2]++ }
	}},
	{"reads local memory after done", "completion/local memory is quiet", "is wrong in the end", func(b *broken) {
		b.after = func(b *broken, c *transport.Chunk) {
			if c.Op == xfer.Write {
				copy(b.far(c), c.Memory())
			}
		}
	}},
	{"leaves out the last byte", "bytes/4096 bytes", "byte 4095", func(b *broken) {
		b.before = func(b *broken, c *transport.Chunk) { b.destination(c)[c.Len-1] ^= 0xff }
	}},
	{"swaps two bytes of larger chunks", "bytes/65537 bytes", "was not", func(b *broken) {
		b.before = func(b *broken, c *transport.Chunk) {
			if d := b.destination(c); c.Len > 60_000 {
				d[50_000], d[50_001] = d[50_001], d[50_000]
			}
		}
	}},
	{"writes one byte too many", "bytes/7 bytes", "no request names it", func(b *broken) {
		b.before = func(b *broken, c *transport.Chunk) { c.Local.View(c.Off, c.Len+1)[c.Len] = 0 }
	}},
	{"writes one byte too many at the target", "bytes/7 bytes", "no request names it", func(b *broken) {
		b.before = func(b *broken, c *transport.Chunk) {
			c.Len++
			b.far(c)[c.Len-1] = 0
		}
	}},
	{"says done when it was refused", "bytes/beyond a region", "could have reached", func(b *broken) {
		b.done = func(s *tap, cs []transport.Completion) {
			for i := range cs {
				cs[i].Fault = nil
			}
			s.Source.Done(cs)
		}
	}},
	{"refuses with another code", "bytes/private memory", "want Refused", func(b *broken) { b.faults(func(f *xfer.Fault) { f.Code = xfer.Socket }) }},
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
	{"keeps what a dead target does not answer", "failure/target killed before", "did not end", func(b *broken) {
		b.done = func(s *tap, cs []transport.Completion) {
			for _, c := range cs {
				if c.Fault == nil || c.Fault.Code != xfer.Endpoint {
					s.Source.Done([]transport.Completion{c})
				}
			}
		}
	}},
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
	{"says that everybody can be reached", "honesty/refused says why", "can be reached which offers nothing", func(b *broken) {
		b.offers = func(o *transport.Offer) { o.Refused = nil }
	}},
	{"refuses without saying what it found", "honesty/refused says why", `have ""`, func(b *broken) {
		b.offers = func(o *transport.Offer) {
			for i := range o.Refused {
				o.Refused[i].Have = ""
			}
		}
	}},
	{"has no cost", "honesty/cost", "the row is", func(b *broken) {
		b.offers = func(o *transport.Offer) { o.Cost = transport.Cost{} }
	}},
	{"has another cost each time", "identity/offers are stable", "after a transfer", func(b *broken) {
		var n time.Duration
		b.offers = func(o *transport.Offer) { n++; o.Cost.Setup += n }
	}},
	{"overwrites the rows of others", "identity/offers are appended", "became", func(b *broken) { b.overwrites = true }},
	{"has another name each time", "identity/name", "then", func(b *broken) {
		n := 0
		b.name = func() string { n++; return "local" + strconv.Itoa(n) }
	}},
	{"describes somebody else", "identity/describe", "became", func(b *broken) {
		b.describe = func(d *segment.Desc) { d.Name = "me" }
	}},
	{"describes something else each time", "identity/describe again", "then", func(b *broken) {
		n := 0
		b.describe = func(d *segment.Desc) { n++; d.TCP.Version = n }
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
	{"does not say which peer", "explain/refused memory", "the peer is", func(b *broken) { b.faults(func(f *xfer.Fault) { f.Peer = "" }) }},
	{"does not say which path", "explain/lost memory", "the path is", func(b *broken) { b.faults(func(f *xfer.Fault) { f.Path = "" }) }},
	{"does not say where", "explain/a killed target", "no stage", func(b *broken) { b.faults(func(f *xfer.Fault) { f.Stage = "" }) }},
	{"fails a dial with a bare error", "explain/a target that has left", "no *xfer.Fault", func(b *broken) {
		b.dial = func(context.Context) error { return errors.New("no") }
	}},
}

var anything = transport.Want{Bytes: 1 << 30, Piece: 1 << 30, Queues: transport.Set(transport.Small, transport.Bulk, transport.Suspect)}

// TestEachDefectIsNoticed runs the case that has to notice against the sound transport, which passes, and against the
// broken one, which does not.
func TestEachDefectIsNoticed(t *testing.T) {
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			c, g := find(t, d.noticed)
			if raceDetector && g == "allocation" {
				t.Skip("the race detector allocates, too")
			}
			if r := attempt(t, c, g, 20*time.Second, nil); r.failed || r.skipped {
				t.Fatalf("the sound transport does not pass %s: %s", d.noticed, r.log)
			}
			r := attempt(t, c, g, 300*time.Millisecond, d.put)
			if !r.failed || !strings.Contains(r.log, d.says) {
				t.Errorf("%s did not notice, or not that %q; it said: %s", d.noticed, d.says, r.log)
			}
			if !strings.Contains(r.log, "demanded: "+c.demands+"\nhappened: ") || !strings.Contains(r.log, "read more: "+guide+"#"+g) {
				t.Errorf("the message does not say what was demanded, what happened and where to read more: %s", r.log)
			}
		})
	}
}

func TestEveryGroupHasADefectThatItNotices(t *testing.T) {
	for _, g := range groups {
		found := false
		for _, d := range defects {
			found = found || strings.HasPrefix(d.noticed, g.name+"/")
		}
		if !found {
			t.Errorf("no defect is noticed by group %s", g.name)
		}
	}
}

func find(t *testing.T, name string) (testCase, string) {
	t.Helper()
	for _, g := range groups {
		for _, c := range g.cases {
			if g.name+"/"+c.name == name {
				return c, g.name
			}
		}
	}
	t.Fatalf("there is no case %s", name)
	return testCase{}, ""
}

// attempt runs one case and returns its verdict.
func attempt(t *testing.T, c testCase, group string, patience time.Duration, put func(*broken)) *recorder {
	t.Helper()
	r := &recorder{TB: t}
	b := &broken{release: make(chan struct{})}
	var done sync.WaitGroup
	done.Go(func() {
		perform(r, c, group, Options{Patience: patience}.withDefaults(), func() Pair { return b.pair(put) })
	})
	done.Wait()
	close(b.release)
	for _, f := range b.leaked {
		f.Close()
	}
	return r
}
