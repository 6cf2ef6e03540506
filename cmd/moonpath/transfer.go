package main

import (
	"fmt"
	"math"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/xfer"
)

// transferFlags are what write and read have in common.
type transferFlags struct {
	Peer      peerFlags `embed:""`
	Addr      *addrFlag `name:"addr" placeholder:"ADDR" help:"Address in the peer's memory, decimal or with 0x. Default: the peer's first buffer."`
	Transport string    `name:"transport" placeholder:"NAME" help:"Insist on this transport instead of the best one."`
}

// place is where a transfer starts in the peer's memory, and how much room there is from there on.
type place struct {
	addr, room uint64
}

// place returns the address that was asked for, else the first buffer. Addresses outside published buffers are left
// to the peer: some engines accept more than they publish.
func (f *transferFlags) place(a *app, p *peer) (place, error) {
	if f.Addr != nil {
		return place{addr: uint64(*f.Addr), room: math.MaxUint64 - uint64(*f.Addr)}, nil
	}
	b, err := p.buffer(0)
	if err != nil {
		return place{}, err
	}
	a.note("no --addr: taking the first buffer of %s, %s at %s", p.name, config.FormatSize(b.Len), hex(b.Addr))
	return place{b.Addr, b.Len}, nil
}

// fits reports a length that does not fit, before a byte moves.
func (at place) fits(p *peer, what string, length uint64) error {
	if length <= at.room {
		return nil
	}
	return &toolError{
		exit: exitRefused, code: xfer.AddressNotRegistered, stage: xfer.StageArgument, peer: p.name,
		detail: fmt.Sprintf("%s has %d bytes, and from %s on there are only %d", what, length, hex(at.addr), at.room),
		next:   "choose another --addr or a smaller --length: moonpath segment " + p.name + " lists the buffers",
	}
}

// transferResult is what write and read print.
type transferResult struct {
	Op             string                `json:"op"`
	Segment        string                `json:"segment"`
	Addr           uint64                `json:"addr"`
	Length         uint64                `json:"length"`
	File           string                `json:"file"`
	Seconds        float64               `json:"seconds"` // reading or writing the file included
	BytesPerSecond float64               `json:"bytes_per_second"`
	Unconfirmed    int                   `json:"unconfirmed_requests"` // completed over a protocol without acknowledgement
	Paths          []moonpath.PathReport `json:"paths"`
}

func newTransferResult(w *window, at place, file string, length uint64, took time.Duration) *transferResult {
	return &transferResult{
		Op: w.op.String(), Segment: w.peer.name, Addr: at.addr, Length: length, File: file,
		Seconds: took.Seconds(), BytesPerSecond: perSecond(length, took),
		Unconfirmed: w.paths.unconfirmed, Paths: w.paths.paths,
	}
}

// report prints the result: for scripts on standard output, for people beside it, since that may be the file.
func (a *app) report(r *transferResult, w *window) error {
	if a.common.JSON {
		return a.emit(r, nil)
	}
	verb, preposition := "wrote", "to"
	if w.op == moonpath.OpRead {
		verb, preposition = "read", "from"
	}
	took := brief(time.Duration(r.Seconds * float64(time.Second)))
	a.note("%s %d bytes %s %s at %s over %s in %v, %s", verb, r.Length, preposition, r.Segment, hex(r.Addr),
		w.paths.names(), took, rate(r.BytesPerSecond))
	if r.Unconfirmed > 0 {
		a.note("%s completed without an acknowledgement, which the peer's protocol does not have", plural(r.Unconfirmed, "request"))
	}
	return nil
}
