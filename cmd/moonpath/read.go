package main

import (
	"context"
	"io"
	"time"

	"github.com/moonpath-io/moonpath"
)

type readCmd struct {
	Transfer transferFlags `embed:""`
	Length   *sizeFlag     `name:"length" placeholder:"SIZE" help:"Read this many bytes. Default: to the end of the buffer that holds the address."`
	File     string        `name:"file" required:"" placeholder:"PATH" help:"File to put the bytes into; - is standard output."`
}

// Help is the part of the help that examples need.
func (*readCmd) Help() string {
	return `The file appears under its name when all bytes are in it, or not at all. Bytes pass through 64 MiB of registered
memory, whatever the length.

Examples:

    moonpath read --segment 127.0.0.1:15123 --length 1MiB --file out.bin
    moonpath read --segment 127.0.0.1:15123 --addr 0x7f2a40000000 --file out.bin --json
    moonpath read --segment 127.0.0.1:15123 --length 64KiB --file - | sha256sum`
}

// Run reads into the file.
func (c *readCmd) Run(a *app) error {
	if c.File == "-" && a.common.JSON {
		return usage("read", "--json and --file - both want standard output: give a file")
	}
	dst, err := a.openSink(c.File)
	if err != nil {
		return err
	}
	defer dst.discard()
	return a.withPeer(c.Transfer.Peer, func(p *peer) error { return c.read(a, p, dst) })
}

func (c *readCmd) read(a *app, p *peer, dst *sink) (err error) {
	pin, err := p.pin(c.Transfer.Transport)
	if err != nil {
		return err
	}
	at, length, err := c.span(a, p)
	if err != nil {
		return err
	}
	w, err := newWindow(p, moonpath.OpRead, pin, length)
	if err != nil {
		return err
	}
	defer func() {
		if closing := w.close(); err == nil {
			err = closing
		}
	}()
	line := a.progress(length, "reading from %s", p.name)
	defer line.end()
	start := time.Now()
	if err := w.receive(a.ctx, dst, at.addr, length, line.add); err != nil {
		return err
	}
	if err := dst.commit(); err != nil {
		return err
	}
	took := time.Since(start)
	line.end()
	return a.report(newTransferResult(w, at, c.File, length, took), w)
}

// span returns what to read.
func (c *readCmd) span(a *app, p *peer) (place, uint64, error) {
	at, err := c.Transfer.place(a, p)
	if err != nil {
		return place{}, 0, err
	}
	if c.Length != nil {
		return at, uint64(*c.Length), at.fits(p, "--length", uint64(*c.Length))
	}
	b, err := p.at(at.addr)
	return at, b.Len, err
}

// receive reads length bytes into dst, and calls moved for what is there.
func (w *window) receive(ctx context.Context, dst io.Writer, from, length uint64, moved func(uint64)) error {
	var asked, got uint64
	for next := 0; got < length; next = 1 - next {
		h := &w.halves[next]
		done, err := w.finish(ctx, h)
		if err != nil {
			return err
		}
		if len(done) > 0 {
			if _, err := dst.Write(done); err != nil {
				return err
			}
			got += uint64(len(done))
			moved(uint64(len(done)))
		}
		if n := min(length-asked, uint64(len(h.bytes))); n > 0 {
			if err := w.start(ctx, h, from+asked, n); err != nil {
				return err
			}
			asked += n
		}
	}
	return nil
}
