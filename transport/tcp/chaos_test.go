package tcp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// TestEveryRequestEndsOnceWhateverThePeerDoes: the peer ends one connection in a hundred requests, in every way,
// refuses some, and some requests are canceled. Those that it was asked for properly complete, with the right bytes.
func TestEveryRequestEndsOnceWhateverThePeerDoes(t *testing.T) {
	for name, incarnation := range kinds {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				g := &target{version: 2, incarnation: incarnation}
				const bad = remoteBase + 48<<20
				g.refuse = func(addr uint64) bool { return addr >= bad }
				whim := &whims{r: rand.New(rand.NewPCG(seed, 2))}
				srv := listenRaw(t, func(c *conn) {
					if incarnation != 0 && !c.greet(incarnation) {
						return
					}
					for whim.serve(g, c) {
					}
				})
				h := openHost(t)
				m := h.memory(24<<20, false)
				_, s := h.dial(srv.desc(2, incarnation))
				var submitters sync.WaitGroup
				for i := range uint64(4) {
					submitters.Go(func() { chaos(t, s, g, m, i, seed, bad) })
				}
				submitters.Wait()
				if n := s.held(); n != 0 {
					t.Errorf("%d chunks are out", n)
				}
			})
		}
	}
}

// whims is what a peer does of its own accord.
type whims struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (w *whims) roll() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.r.IntN(600)
}

func (w *whims) serve(g *target, c *conn) bool {
	switch w.roll() {
	case 0: // before the next request, whatever is under way
		c.reset()
		return false
	case 1:
		return false
	case 2: // in the middle of one
		c.header()
		c.reset()
		return false
	case 3: // executed, and not answered
		if h, _, ok := c.header(); ok && h.Opcode == v2Write && h.Addr < remoteBase+48<<20 {
			if b, ok := c.payload(h.Size); ok {
				g.store(h.Addr, b)
			}
		}
		c.reset()
		return false
	case 4: // half of an answer
		if h, _, ok := c.header(); ok && h.Opcode == v2Read && h.Addr < remoteBase+48<<20 {
			c.put(status(tcpframe.OK), make([]byte, h.Size/2))
		}
		return false
	}
	return g.one(c)
}

// chaos submits requests of its own part of memory at both ends, in rounds.
func chaos(t *testing.T, s *source, g *target, m *mem.Region, part, seed, bad uint64) {
	r := rand.New(rand.NewPCG(seed, 100+part))
	local, remote := part*(6<<20), remoteBase+part*(6<<20)
	for range 12 {
		var good, others []*task
		for off := uint64(0); off < 4<<20 && len(good) < 150; {
			n := []uint64{1, 100, 4096, 16 << 10, 70000, 1200000}[r.IntN(6)]
			n = min(n, 4<<20-off)
			k := newTask(xfer.Op(r.IntN(2)), m, local+off, n, remote+off)
			off += n
			switch r.IntN(12) {
			case 0:
				k.remote = bad + r.Uint64N(1<<20)
				if r.IntN(2) == 0 {
					k.suspect()
				}
				others = append(others, k)
			case 1:
				k.remote += 24 << 20 // a canceled write may happen later; nobody else looks there
				others = append(others, k)
			default:
				good = append(good, k)
			}
		}
		for _, k := range good {
			pattern(k.memory(), r.Uint64())
			if k.op == xfer.Read {
				g.store(k.remote, k.memory())
				clear(k.memory())
			}
		}
		s.queue(others...)
		s.submit(good...)
		s.drop(others...)
		s.route.Cancel(s.refs(others...))
		for i, k := range append(good, others...) {
			select {
			case <-k.ended:
			case <-time.After(patience):
				t.Errorf("request %d does not end: %s of %d bytes", i, k.op, k.len)
				return
			}
		}
		for i, k := range good {
			if k.fault != nil {
				t.Errorf("good request %d of %d: %s of %d bytes: %v", i, len(good), k.op, k.len, k.fault)
			} else if !bytes.Equal(g.load(k.remote, k.len), k.memory()) {
				t.Errorf("good request %d: %s of %d bytes: wrong bytes", i, k.op, k.len)
			}
		}
		for _, k := range others {
			if k.fault != nil && k.fault.Code != xfer.Interrupted && k.fault.Code != xfer.Refused && k.remote < bad {
				t.Errorf("a canceled request: %v", k.fault)
			}
		}
	}
}
