package sysx

import (
	"runtime"
	"sync/atomic"
)

// A goroutine in a system call keeps its processor until the scheduler's monitor takes it away, and one whose
// calls always find data never parks. Large calls on every processor therefore keep the runtime from looking
// at its poller for up to ten milliseconds, and a small answer that has arrived waits that long. While small
// requests are about, large calls take turns, so that one processor stays free for them.
var (
	turns    = make(chan struct{}, max(runtime.GOMAXPROCS(0)-1, 1))
	hurrying atomic.Bool
)

// Hurry says that small requests are about: large calls take turns from now on, until Relax.
func Hurry() {
	if !hurrying.Load() {
		hurrying.Store(true)
	}
}

// Relax ends what Hurry began; it is called from time to time, and the next small request hurries again.
func Relax() { hurrying.Store(false) }
