package p2p

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/wire/handshake"
	"github.com/moonpath-io/moonpath/wire/segjson"
	"github.com/moonpath-io/moonpath/xfer"
)

// publication is one version of the engine's own description. Its frame is made when a peer first asks
// for it: registering thousands of buffers one by one would encode thousands of lists that nobody reads.
type publication struct {
	desc  *segment.Desc
	once  sync.Once
	frame []byte
}

// Publish makes d what peers get from now on; d must not change any more. Its name has to be the node's,
// because peers send notifications there. It does no I/O.
func (n *Node) Publish(_ context.Context, d *segment.Desc) error {
	switch {
	case n.life.Err() != nil:
		return call{stage: xfer.StageControl, peer: n.Name()}.closed()
	case d == nil || len(d.Protocols) == 0:
		return unpublishable("the description names no protocol", "install a transport first, or withdraw")
	case d.Name != n.Name():
		return unpublishable(fmt.Sprintf("the description is that of %q, the control port is %q", d.Name, n.Name()),
			"publish under the name of the control port")
	}
	n.published.Store(&publication{desc: d})
	return nil
}

func unpublishable(detail, next string) *xfer.Fault {
	return &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageArgument, Detail: detail, Next: next}
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
	p.once.Do(func() { p.frame = n.encode(p.desc) })
	return p.frame
}

func noDescriptor() []byte {
	return ctrlframe.Append(nil, ctrlframe.Frame{Type: ctrlframe.Metadata, Body: handshake.AppendNoDescriptor(nil)})
}

// timestampForm is that of published engines.
const timestampForm = "2006-01-02 15:04:05.000000"

func (n *Node) encode(d *segment.Desc) []byte {
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
