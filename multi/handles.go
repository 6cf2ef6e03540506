package multi

import (
	"fmt"
	"sync"

	"github.com/moonpath-io/moonpath/xfer"
)

// batchTable hands out batch ids: index from 1 in the low half, generation above it.
type batchTable struct {
	mu    sync.RWMutex
	slots []batchSlot
	free  []uint32
}

type batchSlot struct {
	gen   uint32
	batch *Batch
}

// add gives b its id.
func (t *batchTable) add(b *Batch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var i uint32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, batchSlot{})
	}
	t.slots[i].batch = b
	b.id = xfer.BatchID(uint64(t.slots[i].gen)<<32 | uint64(i+1))
}

func (t *batchTable) get(id xfer.BatchID) (*Batch, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if i := uint32(id) - 1; int(i) < len(t.slots) {
		if s := t.slots[i]; s.batch != nil && s.batch.id == id {
			return s.batch, nil
		}
	}
	return nil, &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageArgument, Detail: fmt.Sprintf("batch id %d is not allocated in this engine", uint64(id)), Next: "use the id that AllocateBatchID returned, and not after FreeBatchID"}
}

func (t *batchTable) remove(id xfer.BatchID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := uint32(id) - 1
	t.slots[i].batch = nil
	t.slots[i].gen++
	t.free = append(t.free, i)
}

func (t *batchTable) all() []*Batch {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var live []*Batch
	for _, s := range t.slots {
		if s.batch != nil {
			live = append(live, s.batch)
		}
	}
	return live
}

// Batch returns the batch behind an id, or InvalidArgument for one that is stale or foreign.
func (m *Multi) Batch(id xfer.BatchID) (*Batch, error) { return m.batches.get(id) }
