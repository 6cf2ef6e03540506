package meta

import (
	"context"

	"github.com/moonpath-io/moonpath/xfer"
)

// System is two engines with memory: the local one submits requests to the remote one. Each history gets a fresh one.
// One of its methods is called at a time.
type System interface {
	// Memory returns a slot of a side, mapped until Free and registered only between Register and Unregister. It lies
	// outside the Go heap (mem.Map), where the race detector does not follow what a peer moves while it is looked at.
	Memory(side Side, slot int) []byte
	Register(side Side, slot int) error
	// Unregister waits for what uses the memory.
	Unregister(side Side, slot int) error
	// Submit starts requests as one batch. A request that cannot be started is a task that has failed.
	Submit(rs []Request) (Batch, error)
	// Do makes one transfer, until ctx ends.
	Do(ctx context.Context, r Request) error
	// Freeze stops everything on its way between the engines until Thaw, and Cut ends their connections. They are called
	// only if the Shape has Faults.
	Freeze() error
	Thaw() error
	Cut() error
	// Close ends both engines.
	Close() error
	// Free gives the memory back, after Close.
	Free() error
}

// Batch is a set of tasks, as that of package moonpath.
type Batch interface {
	// Wait returns when no task is unfinished, or ctx ends.
	Wait(ctx context.Context) error
	// Status returns the state of a task, after Close, too.
	Status(task int) (xfer.Status, error)
	Cancel()
	// Close cancels what is unfinished and returns when local memory is quiet.
	Close() error
}
