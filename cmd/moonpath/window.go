package main

import (
	"context"

	"github.com/moonpath-io/moonpath"
)

const (
	windowBytes = 64 << 20 // registered memory that a file of any size passes through
	windowHalf  = windowBytes / 2
	pieceBytes  = 4 << 20 // one request: large enough that its set-up does not show
)

// window is registered memory in two halves: one is on the wire while the other is filled from, or emptied into, a
// file.
type window struct {
	peer   *peer
	pin    moonpath.Pin
	op     moonpath.Op
	memory *moonpath.Memory
	halves [2]half
	paths  pathTally
}

// half is one half of a window and the transfer that it is in, if n is not zero.
type half struct {
	bytes []byte
	local uint64 // offset in the window's memory
	batch *moonpath.Batch
	n     uint64
}

// newWindow registers memory for a transfer of at most length bytes.
func newWindow(p *peer, op moonpath.Op, pin moonpath.Pin, length uint64) (*window, error) {
	half := max(min(length, windowHalf), 1) // an empty file is a transfer, too
	m, err := p.engine.Alloc(2*half, moonpath.AllocOptions{LocalOnly: true})
	if err != nil {
		return nil, err
	}
	w := &window{peer: p, pin: pin, op: op, memory: m}
	for i := range w.halves {
		h := &w.halves[i]
		h.local = uint64(i) * half
		h.bytes = m.Bytes()[h.local : h.local+half]
		if h.batch, err = p.engine.NewBatch(moonpath.BatchOptions{Capacity: windowHalf / pieceBytes}); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

// start transfers n bytes between the half and the peer's memory at remote.
func (w *window) start(ctx context.Context, h *half, remote, n uint64) error {
	requests := make([]moonpath.Request, 0, windowHalf/pieceBytes)
	for at := uint64(0); at < n; at += pieceBytes {
		requests = append(requests, moonpath.Request{
			Op: w.op, Pin: w.pin, Local: w.memory.At(h.local + at), Len: min(n-at, pieceBytes),
			Target: w.peer.id, Remote: remote + at,
		})
	}
	h.n = n
	_, err := h.batch.Submit(ctx, requests)
	return err
}

// finish waits for what start began and returns the bytes of the half that were transferred.
func (w *window) finish(ctx context.Context, h *half) ([]byte, error) {
	if h.n == 0 {
		return nil, nil
	}
	if err := h.batch.Wait(ctx); err != nil {
		return nil, err
	}
	w.paths.add(h.batch.Report())
	done := h.bytes[:h.n]
	h.n = 0
	return done, h.batch.Reset()
}

// close ends what is under way and frees the memory.
func (w *window) close() error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	for i := range w.halves {
		if b := w.halves[i].batch; b != nil {
			keep(b.Close())
		}
	}
	keep(w.memory.Free())
	return first
}
