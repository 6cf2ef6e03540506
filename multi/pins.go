package multi

import (
	"slices"
	"sync"

	"github.com/moonpath-io/moonpath/xfer"
)

// pinTable interns transport names; pins count from 1.
type pinTable struct {
	mu    sync.RWMutex
	names []string
}

func (t *pinTable) intern(name string) (p xfer.Pin, added bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.names, name); i >= 0 {
		return xfer.Pin(i + 1), false
	}
	t.names = append(t.names, name)
	return xfer.Pin(len(t.names)), true
}

// find returns the pin of a name, NoPin for one that was never interned.
func (t *pinTable) find(name string) xfer.Pin {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return xfer.Pin(slices.Index(t.names, name) + 1)
}

// name returns the name behind a pin, "" for one that was never handed out.
func (t *pinTable) name(p xfer.Pin) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if p == xfer.NoPin || int(p) > len(t.names) {
		return ""
	}
	return t.names[p-1]
}

func (t *pinTable) all() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return append([]string(nil), t.names...)
}
