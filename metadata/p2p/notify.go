package p2p

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/wire/handshake"
	"github.com/moonpath-io/moonpath/xfer"
)

// Notify sends a notification to the engine of that name and waits until its queue has taken it. Text
// that the peer could not receive as it is, or at all, is xfer.InvalidArgument; a peer that refuses it,
// xfer.Metadata. A fault with Remote Unknown says that it may have arrived all the same.
func (n *Node) Notify(ctx context.Context, name string, m Notification) error {
	c := call{stage: xfer.StageControl, peer: name}
	request, err := n.notifyRequest(c, m)
	if err != nil {
		return err
	}
	body, err := n.exchange(ctx, c, request)
	if err != nil {
		return err
	}
	accepted, err := handshake.ParseNotifyReply(body, len(body))
	if err != nil {
		f := c.fault(xfer.BadProtocol, "the reply to a notification makes no sense", "", err)
		f.Remote = xfer.Unknown
		return f
	}
	if !accepted {
		return c.fault(xfer.Metadata, "the peer refused the notification",
			"its queue is full, or it takes none: it has to collect its notifications more often", nil)
	}
	return nil
}

// notifyRequest checks what published receivers do not report: they cut text at a NUL, replace what is
// not UTF-8, and drop a message above their limit without a word.
func (n *Node) notifyRequest(c call, m Notification) (ctrlframe.Frame, error) {
	for _, part := range []struct{ field, text string }{{"name", m.Name}, {"text", m.Text}} {
		if !utf8.ValidString(part.text) {
			return ctrlframe.Frame{}, c.fault(xfer.InvalidArgument, "the notification's "+part.field+" is not UTF-8", "encode binary data as text, such as base64", nil)
		}
		if i := strings.IndexByte(part.text, 0); i >= 0 {
			return ctrlframe.Frame{}, c.fault(xfer.InvalidArgument, fmt.Sprintf("the notification's %s has a NUL at byte %d", part.field, i), "encode binary data as text, such as base64", nil)
		}
	}
	limit := n.options.MaxFrame
	size := uint64(len(m.Name)) + uint64(len(m.Text))
	var body []byte
	if size <= limit {
		body = handshake.AppendNotify(nil, handshake.Notify{Name: m.Name, Msg: m.Text})
		size = uint64(len(body)) + 1
	}
	if size > limit {
		return ctrlframe.Frame{}, c.fault(xfer.InvalidArgument, fmt.Sprintf("the notification takes %d bytes, a control frame has at most %d", size, limit),
			"send less text; the data itself belongs into registered memory", nil)
	}
	return ctrlframe.Frame{Type: ctrlframe.Notify, Body: body}, nil
}

// Probe asks whether the engine of that name is alive: any well-formed answer says yes.
func (n *Node) Probe(ctx context.Context, name string) error {
	c := call{stage: xfer.StageControl, peer: name}
	_, err := n.exchange(ctx, c, ctrlframe.Frame{Type: ctrlframe.Probe, Body: handshake.AppendProbeRequest(nil)})
	return err
}
