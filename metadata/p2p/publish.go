package p2p

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/wire/handshake"
	"github.com/moonpath-io/moonpath/wire/segjson"
	"github.com/moonpath-io/moonpath/xfer"
)

// publication is one version of the engine's own description. Description and frame are made when a peer
// first asks: registering thousands of buffers one by one would make thousands of lists that nobody reads.
type publication struct {
	describe func() *segment.Desc
	once     sync.Once
	frame    []byte
}

// Publish makes what describe returns what peers get from now on. It is called when a peer asks, and its result
// must not change any more. The name in it has to be the node's, because peers send notifications there, and
// it has to name a protocol; else the error is logged and peers are told that there is none. It does no I/O.
func (n *Node) Publish(_ context.Context, describe func() *segment.Desc) error {
	if n.life.Err() != nil {
		return call{stage: xfer.StageControl, peer: n.Name()}.closed()
	}
	n.published.Store(&publication{describe: describe})
	return nil
}

// Withdraw makes the node answer like one that has not published yet.
func (n *Node) Withdraw(context.Context) error {
	n.published.Store(nil)
	return nil
}

// descriptorFrame returns the reply to a metadata request. It is shared and must not be changed.
func (n *Node) descriptorFrame() []byte {
	p := n.published.Load()
	if p == nil {
		return noDescriptor()
	}
	p.once.Do(func() { p.frame = n.encode(p.describe()) })
	return p.frame
}

func noDescriptor() []byte {
	return ctrlframe.Append(nil, ctrlframe.Frame{Type: ctrlframe.Metadata, Body: handshake.AppendNoDescriptor(nil)})
}

// timestampForm is that of published engines.
const timestampForm = "2006-01-02 15:04:05.000000"

func (n *Node) encode(d *segment.Desc) []byte {
	if err := n.check(d); err != nil {
		n.options.Log.Error("control port: peers cannot be given this engine's description", "error", err)
		return noDescriptor()
	}
	w := d.ToWire()
	w.Timestamp = time.Now().Format(timestampForm)
	if w.TCPProtoVersion == 0 {
		w.TCPProtoVersion = 1 // what engines without TCP write
	}
	if err := w.Validate(); err != nil {
		n.options.Log.Error("control port: peers cannot be given this engine's description", "error", err)
		return noDescriptor()
	}
	body := segjson.Append(nil, w)
	if size := uint64(len(body)) + 1; size > ctrlframe.DefaultLimit {
		n.options.Log.Warn("control port: the description is larger than peers read by default", "bytes", size,
			"limit", ctrlframe.DefaultLimit, "next", "raise MC_HANDSHAKE_MAX_LENGTH at the peers, or register fewer and larger buffers")
	}
	return ctrlframe.Append(nil, ctrlframe.Frame{Type: ctrlframe.Metadata, Body: body})
}

func (n *Node) check(d *segment.Desc) error {
	switch {
	case len(d.Protocols) == 0:
		return errors.New("it names no protocol")
	case d.Name != n.Name():
		return fmt.Errorf("it is that of %q, the control port is %q", d.Name, n.Name())
	}
	return nil
}
