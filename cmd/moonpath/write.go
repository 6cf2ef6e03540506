package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/moonpath-io/moonpath"
)

type writeCmd struct {
	Transfer transferFlags `embed:""`
	Length   *sizeFlag     `name:"length" placeholder:"SIZE" help:"Write this many bytes. Default: all of the file."`
	File     string        `name:"file" required:"" placeholder:"PATH" help:"File to take the bytes from; - is standard input."`
}

// Help is the part of the help that examples need.
func (*writeCmd) Help() string {
	return `The file passes through 64 MiB of registered memory, whatever its size. Success means that the bytes are in the
peer's memory; if it fails, some may be.

Examples:

    moonpath write --segment 127.0.0.1:15123 --file weights.bin
    moonpath write --segment 127.0.0.1:15123 --addr 0x7f2a40000000 --length 1MiB --file weights.bin --json
    tar c . | moonpath write --segment 127.0.0.1:15123 --file -`
}

// Run writes the file.
func (c *writeCmd) Run(a *app) error {
	src, err := a.openSource(c.File)
	if err != nil {
		return err
	}
	defer src.close()
	length, exact, err := c.length(src)
	if err != nil {
		return err
	}
	return a.withPeer(c.Transfer.Peer, func(p *peer) error { return c.write(a, p, src, length, exact) })
}

// length returns how many bytes to write, at most; exact says that there must not be fewer.
func (c *writeCmd) length(src *source) (n uint64, exact bool, err error) {
	switch {
	case c.Length == nil && src.sized:
		return src.size, true, nil
	case c.Length == nil:
		return math.MaxUint64, false, nil
	case src.sized && uint64(*c.Length) > src.size:
		return 0, false, usage("write", "--length wants %d bytes, and %s has %d", *c.Length, src.name, src.size)
	}
	return uint64(*c.Length), true, nil
}

func (c *writeCmd) write(a *app, p *peer, src *source, length uint64, exact bool) (err error) {
	pin, err := p.pin(c.Transfer.Transport)
	if err != nil {
		return err
	}
	at, err := c.Transfer.place(a, p)
	if err != nil {
		return err
	}
	total := uint64(0)
	if exact {
		if err := at.fits(p, src.name, length); err != nil {
			return err
		}
		total = length
	}
	w, err := newWindow(p, moonpath.OpWrite, pin, length)
	if err != nil {
		return err
	}
	defer func() {
		if closing := w.close(); err == nil {
			err = closing
		}
	}()
	line := a.progress(total, "writing to %s", p.name)
	defer line.end()
	start := time.Now()
	sent, err := w.send(a.ctx, src, at, length, line.add)
	if err != nil {
		return err
	}
	took := time.Since(start)
	if exact && sent < length {
		return &toolError{
			exit: exitFailed, name: "File", stage: "file", peer: p.name,
			detail: fmt.Sprintf("%s ended after %d of %d bytes, which are written", src.name, sent, length),
			next:   "give the --length that it has, or none",
		}
	}
	line.end()
	return a.report(newTransferResult(w, at, c.File, sent, took), w)
}

// send writes what src has, at most length bytes, and calls moved for what has arrived.
func (w *window) send(ctx context.Context, src *source, at place, length uint64, moved func(uint64)) (sent uint64, err error) {
	next, ended := 0, false
	for !ended {
		h := &w.halves[next]
		next = 1 - next
		done, err := w.finish(ctx, h)
		if err != nil {
			return sent, err
		}
		moved(uint64(len(done)))
		n, err := io.ReadFull(src, h.bytes[:min(length-sent, uint64(len(h.bytes)))])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return sent, fileError(exitFailed, src.name, err)
		}
		if err := at.fits(w.peer, src.name, sent+uint64(n)); err != nil {
			return sent, err
		}
		if n > 0 {
			if err := w.start(ctx, h, at.addr+sent, uint64(n)); err != nil {
				return sent, err
			}
		}
		sent += uint64(n)
		ended = err != nil || sent == length
	}
	for range w.halves {
		done, err := w.finish(ctx, &w.halves[next])
		if err != nil {
			return sent, err
		}
		moved(uint64(len(done)))
		next = 1 - next
	}
	return sent, nil
}
