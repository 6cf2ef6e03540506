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
	op, start := w.requests[0].Op, w.at
	defer func() {
		w.setOp(op)
		w.at = start
		w.place()
	}()
	w.at.localAt, w.at.remoteAt = 0, 0
	for pass, op := range []moonpath.Op{moonpath.OpWrite, moonpath.OpRead} {
		w.setOp(op)
		for range w.at.windows() {
			w.place()
			local := w.memory.Bytes()[w.at.local():][:w.at.window]
			position := w.at.remote()
			seed := [...]uint64{verifySeed, poisonSeed}[pass]
			fillPattern(local, seed, position)
			if err := w.once(ctx); err != nil {
				w.fail(err)
				return err
			}
			if op == moonpath.OpRead {
				if err := compare(p, local, verifySeed, w.remote, position); err != nil {
					return err
				}
			}
			w.at.advance()
		}
	}
	return nil
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
