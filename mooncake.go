package moonpath

import (
	"context"

	"github.com/moonpath-io/moonpath/xfer"
)

// AllocateBatchID returns the id of a new batch for up to capacity requests.
func (e *Engine) AllocateBatchID(capacity int) (BatchID, error) {
	b, err := e.NewBatch(BatchOptions{Capacity: capacity})
	if err != nil {
		return 0, err
	}
	return b.ID(), nil
}

// FreeBatchID gives a batch back. It is BatchBusy while a task is unfinished; unlike Mooncake's, it does not
// ask for each task to have been polled. A stale or foreign id is InvalidArgument.
func (e *Engine) FreeBatchID(id BatchID) error {
	b, err := e.multi.Batch(id)
	if err != nil {
		return err
	}
	e.notes.sendIfCompleted(e, id)
	if err := b.Free(); err != nil {
		return err
	}
	e.notes.drop(id)
	return nil
}

// SubmitTransfer adds requests to a batch and starts them. If one names an unknown segment or has no usable
// transport, or they do not fit, nothing is submitted. What goes wrong later is found in the status.
func (e *Engine) SubmitTransfer(id BatchID, requests []Request) error {
	b, err := e.multi.Batch(id)
	if err != nil {
		return err
	}
	if err := e.beforeUse(context.Background(), requests); err != nil {
		return err
	}
	return b.SubmitAll(context.Background(), requests)
}

// SubmitTransferWithNotify is SubmitTransfer that sends a notification to the segment of the first request
// once the whole batch has completed. As in Mooncake it is sent by the call that finds that out:
// GetTransferStatus, GetBatchTransferStatus or FreeBatchID. It is not sent if a task fails, and a later call
// for the same batch replaces it.
func (e *Engine) SubmitTransferWithNotify(id BatchID, requests []Request, n Notify) error {
	if len(requests) == 0 {
		return &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageArgument, Detail: "no request says whom to notify"}
	}
	if err := e.SubmitTransfer(id, requests); err != nil {
		return err
	}
	e.notes.put(id, pendingNote{requests[0].Target, n})
	return nil
}

// GetTransferStatus returns the state of one task of a batch.
func (e *Engine) GetTransferStatus(id BatchID, task int) (Status, error) {
	b, err := e.multi.Batch(id)
	if err != nil {
		return Status{State: xfer.Invalid}, err
	}
	s, err := b.Status(task)
	if s.State == xfer.Completed {
		e.notes.sendIfCompleted(e, id)
	}
	return s, err
}

// GetBatchTransferStatus returns the state of a batch as a whole: Waiting while a task is unfinished, then
// Completed with the sum of bytes, or Failed with the first error. An empty batch is Completed.
func (e *Engine) GetBatchTransferStatus(id BatchID) (Status, error) {
	b, err := e.multi.Batch(id)
	if err != nil {
		return Status{State: xfer.Invalid}, err
	}
	s := b.Overall()
	if s.State == xfer.Completed {
		e.notes.sendIfCompleted(e, id)
	}
	return s, nil
}
