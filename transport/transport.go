package transport

import (
	"context"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
)

// Transport is everything the engine needs from a data path. Its methods may be called from any
// goroutine.
type Transport interface {
	// Name is the protocol's name in descriptors and pins.
	Name() string
	// Offers appends one row per rail towards that peer, usable or not: an unusable row says why. The
	// rows depend on the description alone until Env.Changed is called.
	Offers(to *segment.Desc, dst []Offer) []Offer
	// Describe adds this transport's part to a draft, at each publication.
	Describe(d *segment.Desc)
	// Attach registers regions with the transport, all or none.
	Attach(ctx context.Context, rs []*mem.Region) error
	// Detach undoes Attach. No chunk of theirs is out any more.
	Detach(ctx context.Context, rs []*mem.Region) error
	// Dial opens the route to a peer. It may block until ctx ends.
	Dial(ctx context.Context, to Peer, work Source) (Route, error)
	// Close ends all service to peers. The engine has quiesced every route before.
	Close(ctx context.Context) error
}

// Peer is an opened segment as a transport sees it; *segment.Peer is one.
type Peer interface {
	Desc() *segment.Desc
	Refresh(ctx context.Context) (*segment.Desc, error)
}

// Route is one transport's path to one peer: all its lanes or rails. They share one Source.
type Route interface {
	// Kick says that the source has work. It may do work, and call Done, in the caller's goroutine; it
	// never waits for a peer, and the caller holds no lock.
	Kick()
	// Cancel asks for chunks back soon. They come through Done, as do neighbours that cannot be sent again.
	Cancel(refs []Ref)
	// Quiesce ends the route: it takes nothing more and gives back all it holds. It may block until ctx
	// ends; what is out then is torn down.
	Quiesce(ctx context.Context) Quietness
}

// Quietness is what a route can promise after Quiesce.
type Quietness uint8

const (
	// Unquiet promises nothing; chunks that were not given back stay leased.
	Unquiet Quietness = iota
	// LocalQuiet promises that nothing touches local memory: all chunks are back.
	LocalQuiet
	// Quiet promises in addition that nothing that was sent will touch the peer's memory.
	Quiet
)

// String returns the name used in reports.
func (q Quietness) String() string {
	switch q {
	case Quiet:
		return "quiet"
	case LocalQuiet:
		return "locally quiet"
	}
	return "not quiet"
}
