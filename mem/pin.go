package mem

import (
	"runtime"
	"sync"
)

// pins keeps the pinners of all registrations reachable. The runtime ends the process when it collects a pinner
// that still pins something; like this, a table that is dropped without unregistering leaks its memory instead.
var pins = struct {
	mu  sync.Mutex
	all map[*runtime.Pinner]struct{}
}{all: make(map[*runtime.Pinner]struct{})}

func pin(first *byte) *runtime.Pinner {
	p := new(runtime.Pinner)
	p.Pin(first)
	pins.mu.Lock()
	defer pins.mu.Unlock()
	pins.all[p] = struct{}{}
	return p
}

// unpin does nothing for nil.
func unpin(p *runtime.Pinner) {
	if p == nil {
		return
	}
	pins.mu.Lock()
	defer pins.mu.Unlock()
	delete(pins.all, p)
	p.Unpin()
}
