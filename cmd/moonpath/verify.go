package main

import (
	"context"
	"fmt"

	"github.com/moonpath-io/moonpath"
)

const (
	verifySeed = 0x6d6f6f6e70617468 // what is written
	poisonSeed = 0x0ddba11          // what is in local memory before it is read back
)

// verify writes a pattern through every window of a worker, reads it back and compares. It uses the worker's own
// batch and geometry, outside of what is measured.
func (w *worker) verify(ctx context.Context, p *peer) error {
	op, at := w.requests[0].Op, w.at
	defer func() {
		w.setOp(op)
		w.at = at
		w.place()
	}()
	if err := w.writePattern(ctx); err != nil {
		return err
	}
	return w.readPattern(ctx, p)
}

func (w *worker) writePattern(ctx context.Context) error {
	return w.eachWindow(moonpath.OpWrite, func(local []byte, position uint64) error {
		fillPattern(local, verifySeed, position)
		return w.checked(ctx)
	})
}

func (w *worker) readPattern(ctx context.Context, p *peer) error {
	return w.eachWindow(moonpath.OpRead, func(local []byte, position uint64) error {
		fillPattern(local, poisonSeed, position)
		if err := w.checked(ctx); err != nil {
			return err
		}
		return compare(p, local, verifySeed, w.remote, position)
	})
}

// eachWindow goes once through the peer's share; position is that of the window in the peer's buffer.
func (w *worker) eachWindow(op moonpath.Op, do func(local []byte, position uint64) error) error {
	w.setOp(op)
	w.at.localAt, w.at.remoteAt = 0, 0
	for range w.at.windows() {
		w.place()
		if err := do(w.memory.Bytes()[w.at.local():][:w.at.window], w.at.remote()); err != nil {
			return err
		}
		w.at.advance()
	}
	return nil
}

// checked is once with failed requests counted.
func (w *worker) checked(ctx context.Context) error {
	err := w.once(ctx)
	if err != nil {
		w.fail(err)
	}
	return err
}

func (w *worker) setOp(op moonpath.Op) {
	for i := range w.requests {
		w.requests[i].Op = op
	}
}

// compare reports the first byte that is not the pattern's; position counts from the address base.
func compare(p *peer, b []byte, seed, base, position uint64) error {
	i := findMismatch(b, seed, position)
	if i < 0 {
		return nil
	}
	at := position + uint64(i)
	return &toolError{
		exit: exitFailed, name: "Mismatch", stage: "verify", peer: p.name,
		detail: fmt.Sprintf("verification with %s failed: the byte at %s is 0x%02x, and 0x%02x was written", p.name, hex(base+at), b[i], patternByte(seed, at)),
		next:   "make sure that nobody else writes to that buffer, then report it with the output of moonpath segment " + p.name,
	}
}
