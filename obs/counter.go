//moonpath:hot

package obs

import (
	"sync/atomic"

	"golang.org/x/sys/cpu"
)

// Counter is a number that only grows. The zero value is ready; all methods may be called
// from any goroutine. Padding keeps neighbours off its cache line wherever it is embedded.
type Counter struct {
	_ cpu.CacheLinePad
	n atomic.Uint64
	_ cpu.CacheLinePad
}

// Add adds n.
func (c *Counter) Add(n uint64) { c.n.Add(n) }

// Load returns the sum of all calls of Add so far.
func (c *Counter) Load() uint64 { return c.n.Load() }

// Gauge is a number that goes up and down, such as the length of a queue. The zero value is
// ready; all methods may be called from any goroutine. It is padded like [Counter].
type Gauge struct {
	_ cpu.CacheLinePad
	n atomic.Int64
	_ cpu.CacheLinePad
}

// Add adds n, which may be negative.
func (g *Gauge) Add(n int64) { g.n.Add(n) }

// Set replaces the number.
func (g *Gauge) Set(n int64) { g.n.Store(n) }

// Load returns the current number.
func (g *Gauge) Load() int64 { return g.n.Load() }
