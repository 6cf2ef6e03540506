package p2p

import (
	"context"
	"errors"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/wire/handshake"
	"github.com/moonpath-io/moonpath/wire/segjson"
	"github.com/moonpath-io/moonpath/xfer"
)

// Lookup asks the engine of that name for its description; the node's own name is answered with what was
// published last. Errors carry xfer.DNS, xfer.Socket, xfer.MalformedJSON, xfer.Metadata (the peer has no
// description, or one that cannot be used), xfer.Interrupted or xfer.Closed.
func (n *Node) Lookup(ctx context.Context, name string) (*segment.Desc, error) {
	c := call{stage: xfer.StageResolve, peer: name}
	if n.isOwn(name) {
		return n.own(c)
	}
	body, err := n.exchange(ctx, c, ctrlframe.Frame{Type: ctrlframe.Metadata, Body: handshake.AppendMetadataRequest(nil)})
	if err != nil {
		return nil, err
	}
	w, err := segjson.Parse(body)
	if err != nil {
		next := "the peer publishes a description that no engine can use: read its log, or restart it"
		if errors.Is(err, segjson.ErrNotAvailable) {
			next = "check that the peer has installed a transport and uses peer-to-peer metadata"
		}
		return nil, c.fault(xfer.Metadata, "", next, err)
	}
	return segment.FromWire(name, w), nil
}

// own returns a copy, because whoever caches a description numbers it.
func (n *Node) own(c call) (*segment.Desc, error) {
	if n.life.Err() != nil {
		return nil, c.closed()
	}
	p := n.published.Load()
	if p == nil {
		return nil, c.fault(xfer.Metadata, "this engine has published nothing yet", "install a transport first", nil)
	}
	d := *p.describe()
	return &d, nil
}
