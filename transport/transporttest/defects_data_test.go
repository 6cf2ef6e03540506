package transporttest

import (
	"bytes"
	"strconv"
	"time"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// dataDefects break what transports promise about themselves and their bytes.
var dataDefects = []defect{
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
	{"spoils the end of a region", "bytes/last byte", "was not", func(b *broken) {
		b.before = func(b *broken, c *transport.Chunk) {
			if c.Off+c.Len == c.Local.Region.Len {
				b.destination(c)[0] ^= 0xff
			}
		}
	}},
	{"spoils every fiftieth chunk", "bytes/many lengths at once", "was not", func(b *broken) {
		n := 0
		b.before = func(b *broken, c *transport.Chunk) {
			if n++; n%50 == 0 {
				b.destination(c)[0] ^= 0xff
			}
		}
	}},
	{"reads from a cache", "completion/one place again and again", "was not", func(b *broken) {
		seen := make(map[uint64][]byte)
		b.before = func(b *broken, c *transport.Chunk) {
			if c.Op != xfer.Read {
				return
			}
			if old := seen[c.Remote]; old != nil {
				copy(c.Memory(), old)
			}
			seen[c.Remote] = bytes.Clone(c.Memory())
		}
	}},
	{"loses the thousandth chunk", "completion/a burst of small ones", "did not end", func(b *broken) { b.wear(1000) }},
	{"fails what it has offered", "honesty/usable works", "failed", func(b *broken) { b.fails(xfer.NotImplemented) }},
}
