package main

import (
	"fmt"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/xfer"
)

// peer is a segment that the tool's own engine has opened.
type peer struct {
	engine *moonpath.Engine
	id     moonpath.SegmentID
	name   string
	desc   *segment.Desc
}

// peerFlags choose the segment and the address of the own engine.
type peerFlags struct {
	Segment string `name:"segment" required:"" placeholder:"NAME" help:"The peer: HOST:PORT of its control port, as target prints it."`
	Host    string `name:"host" default:"127.0.0.1" help:"Address of the tool's own engine; it binds no other."`
}

// withPeer opens an engine and the segment, calls do, and closes the engine.
func (a *app) withPeer(f peerFlags, do func(*peer) error) (err error) {
	if f.Segment == "" {
		return usage("", "the name of the segment is empty: it is HOST:PORT of the peer's control port")
	}
	wait := a.progress(0, "opening %s", f.Segment)
	defer wait.end()
	engine, err := a.open(moonpath.Options{Host: f.Host, Bind: f.Host}, quietLevel)
	if err != nil {
		return err
	}
	defer func() {
		if closing := engine.Close(); err == nil {
			err = closing
		}
	}()
	p, err := a.openPeer(engine, f.Segment)
	if err != nil {
		return err
	}
	wait.end()
	return do(p)
}

func (a *app) openPeer(engine *moonpath.Engine, name string) (*peer, error) {
	id, err := engine.OpenSegmentContext(a.ctx, name)
	if err != nil {
		return nil, err
	}
	desc, err := engine.Segment(id)
	if err != nil {
		return nil, err
	}
	return &peer{engine: engine, id: id, name: name, desc: desc}, nil
}

// pin returns what makes requests insist on a transport; an empty name leaves the choice to the engine.
func (p *peer) pin(transport string) (moonpath.Pin, error) {
	if transport == "" {
		return xfer.NoPin, nil
	}
	return p.engine.Pin(transport)
}

// buffer returns a published buffer by its position.
func (p *peer) buffer(index int) (segment.Buffer, error) {
	if index < len(p.desc.Buffers) {
		return p.desc.Buffers[index], nil
	}
	return segment.Buffer{}, &toolError{
		exit: exitRefused, code: xfer.AddressNotRegistered, stage: xfer.StageResolve, peer: p.name,
		detail: fmt.Sprintf("segment %s publishes %s: there is no number %d", p.name, plural(len(p.desc.Buffers), "buffer"), index),
		next:   "choose one that moonpath segment " + p.name + " lists, or start the target with --buffer",
	}
}

// at returns the published bytes from addr to the end of its buffer.
func (p *peer) at(addr uint64) (segment.Buffer, error) {
	b := p.desc.Find(addr)
	if b == nil {
		return segment.Buffer{}, &toolError{
			exit: exitRefused, code: xfer.AddressNotRegistered, stage: xfer.StageResolve, peer: p.name,
			detail: fmt.Sprintf("segment %s publishes no buffer that holds %s, so that its end is not known", p.name, hex(addr)),
			next:   "give --length, or an address that moonpath segment " + p.name + " lists",
		}
	}
	rest := *b
	rest.Addr, rest.Len = addr, b.Len-(addr-b.Addr)
	return rest, nil
}
