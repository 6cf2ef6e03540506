package moonpath

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/moonpath-io/moonpath/metadata/p2p"
	"github.com/moonpath-io/moonpath/xfer"
)

// Notify is a short message from one engine to another, beside the data.
type Notify struct {
	Name string // who sends it, or what it is about
	Text string // UTF-8 without NUL
}

// SendNotify sends a message to the engine behind a segment and returns when that has it.
func (e *Engine) SendNotify(target SegmentID, n Notify) error {
	if err := e.checkOpen(); err != nil {
		return err
	}
	name, err := e.controlName(target)
	if err != nil {
		return err
	}
	return e.SendNotifyByName(name, n)
}

// SendNotifyByName is SendNotify to a segment that need not be open.
func (e *Engine) SendNotifyByName(name string, n Notify) error {
	if err := e.checkOpen(); err != nil {
		return err
	}
	ctx, cancel := e.bounded(context.Background(), 0)
	defer cancel()
	return e.node.Notify(ctx, name, p2p.Notification{Name: n.Name, Text: n.Text})
}

// GetNotifies returns the messages that have arrived, oldest first, and forgets them.
func (e *Engine) GetNotifies() []Notify {
	var ns []Notify
	for _, n := range e.node.Notifications() {
		ns = append(ns, Notify{Name: n.Name, Text: n.Text})
	}
	return ns
}

// ProbePeerAlive asks the engine behind a segment for a sign of life; nil is alive.
func (e *Engine) ProbePeerAlive(target SegmentID) error {
	if err := e.checkOpen(); err != nil {
		return err
	}
	name, err := e.controlName(target)
	if err != nil {
		return err
	}
	ctx, cancel := e.bounded(context.Background(), 0)
	defer cancel()
	return e.Probe(ctx, name)
}

// Probe is ProbePeerAlive for a segment that need not be open.
func (e *Engine) Probe(ctx context.Context, name string) error {
	if err := e.checkOpen(); err != nil {
		return err
	}
	return e.node.Probe(ctx, name)
}

// noteTable holds the notifications that wait for their batch to complete.
type noteTable struct {
	size atomic.Int32 // of pending, so that engines without notifications take no lock

	mu      sync.Mutex
	pending map[BatchID]pendingNote
}

type pendingNote struct {
	target SegmentID
	note   Notify
}

func (t *noteTable) put(id BatchID, n pendingNote) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending == nil {
		t.pending = make(map[BatchID]pendingNote)
	}
	t.pending[id] = n
	t.size.Store(int32(len(t.pending)))
}

func (t *noteTable) drop(id BatchID) { t.take(id) }

// take removes the note of a batch.
func (t *noteTable) take(id BatchID) (pendingNote, bool) {
	if t.size.Load() == 0 {
		return pendingNote{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n, found := t.pending[id]
	delete(t.pending, id)
	t.size.Store(int32(len(t.pending)))
	return n, found
}

// waiting reports whether the batch has a note.
func (t *noteTable) waiting(id BatchID) bool {
	if t.size.Load() == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, found := t.pending[id]
	return found
}

// sendIfCompleted sends a batch's note once, if all its tasks have completed.
func (t *noteTable) sendIfCompleted(e *Engine, id BatchID) {
	if !t.waiting(id) {
		return
	}
	b, err := e.multi.Batch(id)
	if err != nil || b.Overall().State != xfer.Completed {
		return
	}
	n, found := t.take(id)
	if !found {
		return
	}
	if err := e.SendNotify(n.target, n.note); err != nil {
		e.log.Warn("notification after a batch not sent", "error", err)
	}
}
