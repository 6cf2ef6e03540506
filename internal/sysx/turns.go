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
	asked    atomic.Bool // Hurry was called since the last Relax
)

// Hurry says that small requests are about: large calls take turns from now on.
func Hurry() {
	if !asked.Load() {
		asked.Store(true)
		hurrying.Store(true)
	}
}

// Relax, called from time to time, ends the turns if Hurry was not called since the time before.
func Relax() {
	if !asked.Swap(false) {
		hurrying.Store(false)
	}
}

// CallBytes is how much one call should move at most, of a limit that is meant for large calls alone.
func CallBytes(limit int) int {
	if hurrying.Load() {
		return limit / 4
	}
	return limit
}

// Tether keeps a goroutine that makes large calls to one thread while small requests are about. The zero value is
// slack; it belongs to one goroutine.
type Tether struct{ tied bool }

// Follow ties or frees the goroutine that calls it, as is due.
func (t *Tether) Follow() {
	if tie := hurrying.Load(); tie != t.tied {
		t.tied = tie
		if tie {
			runtime.LockOSThread()
		} else {
			runtime.UnlockOSThread()
		}
	}
}

// Free unties the goroutine; one that ended tied would take its thread with it.
func (t *Tether) Free() {
	if t.tied {
		t.tied = false
		runtime.UnlockOSThread()
	}
}
