package p2p

import (
	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/wire/handshake"
)

// answer returns the frame that answers a request, in the request's form. On an error, the connection
// has to end without an answer.
func (n *Node) answer(request ctrlframe.Frame) ([]byte, error) {
	reply := ctrlframe.Frame{Type: request.Type, Legacy: request.Legacy}
	switch request.Type {
	case ctrlframe.Metadata:
		n.counters.requests[ctrlframe.Metadata].Add(1)
		return n.descriptorFrame(), nil
	case ctrlframe.Notify:
		message, err := handshake.ParseNotify(request.Body, int(n.options.MaxFrame))
		if err != nil {
			return nil, err
		}
		reply.Body = handshake.AppendNotifyReply(nil, n.take(Notification{Name: message.Name, Text: message.Msg}))
	case ctrlframe.Probe:
		reply.Body = handshake.AppendProbeReply(nil)
	case ctrlframe.Connection:
		reply.Body = handshake.AppendConnectionReply(nil)
	}
	n.counters.requests[request.Type].Add(1)
	return ctrlframe.Append(nil, reply), nil
}

// take queues a notification, if there is room.
func (n *Node) take(m Notification) bool {
	if !n.inbox.put(m) {
		n.counters.dropped.Add(1)
		n.options.Log.Warn("control port: notification refused: the queue is full", "name", m.Name,
			"next", "collect notifications more often")
		return false
	}
	n.counters.queued.Add(1)
	return true
}
