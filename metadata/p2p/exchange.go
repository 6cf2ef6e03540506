package p2p

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// replyPatience is the longest wait for a reply, or for its next MiB. A published engine serves its port
// with one thread, and each client that stays silent there costs the others 5 s: this outlasts three.
const replyPatience = 16 * time.Second

const wrongPort = "check that the port is the control port of a transfer engine"

// exchange sends a request to a peer and returns the body of the reply, which starts with valid JSON. The
// peer's addresses are tried in order. A request that must not arrive twice is not repeated once it has
// been sent.
func (n *Node) exchange(ctx context.Context, c call, request ctrlframe.Frame) ([]byte, error) {
	if n.life.Err() != nil {
		return nil, c.closed()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(n.life, func() { cancel(xfer.Closed) })
	defer stop()

	host, port := n.target(c.peer)
	addresses, err := n.resolve(ctx, c, host)
	if err != nil {
		return nil, err
	}
	var failures []*xfer.Fault
	for _, address := range addresses {
		body, err := n.ask(ctx, c, netip.AddrPortFrom(address, uint16(port)), request)
		if err == nil {
			return body, nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil || err.Code == xfer.MalformedJSON || err.Remote == xfer.Unknown {
			break
		}
	}
	return nil, c.joined(host, failures)
}

// joined is the fault of the last address, with all that happened before.
func (c call) joined(host string, failures []*xfer.Fault) *xfer.Fault {
	last := failures[len(failures)-1]
	if len(failures) == 1 {
		return last
	}
	causes := make([]error, len(failures))
	for i, f := range failures {
		causes[i] = f
	}
	all := c.fault(last.Code, "no address of "+host+" answers", last.Next, errors.Join(causes...))
	all.Remote = last.Remote
	return all
}

// ask makes one connection for one request and its reply.
func (n *Node) ask(ctx context.Context, c call, address netip.AddrPort, request ctrlframe.Frame) ([]byte, *xfer.Fault) {
	dialer := net.Dialer{Timeout: n.options.ConnectTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", address.String())
	if err != nil {
		return nil, c.failed(ctx, xfer.Socket, "cannot connect", err)
	}
	return converse(ctx, c, conn, request, n.options.MaxFrame)
}

// converse sends the request, reads the reply up to its announced end, and closes: published engines
// serve nobody else until their client has closed.
func converse(ctx context.Context, c call, conn net.Conn, request ctrlframe.Frame, limit uint64) ([]byte, *xfer.Fault) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()

	if _, err := pacedWrite(conn, ctrlframe.Append(nil, request), replyPatience); err != nil {
		return nil, c.failed(ctx, xfer.Socket, "cannot send the "+request.Type.String()+" request", err)
	}
	reply, err := ctrlframe.Read(&pacedReader{conn: conn, limit: replyPatience}, limit)
	var f *xfer.Fault
	switch {
	case err != nil:
		f = c.noReply(ctx, request, err)
	case reply.Type != request.Type:
		f = c.wrongReply(request, reply)
	default:
		return reply.Body, nil
	}
	if request.Type == ctrlframe.Notify {
		f.Remote = xfer.Unknown
	}
	return nil, f
}

func (c call) wrongReply(request, reply ctrlframe.Frame) *xfer.Fault {
	got := reply.Type.String()
	if reply.Legacy {
		got = "old-protocol " + got
	}
	return c.fault(xfer.Socket, "the reply to a "+request.Type.String()+" request is of type "+got, wrongPort, nil)
}

// silentPort is what to do about a port that takes a question and does not answer it in time.
const silentPort = "the peer is frozen, or somebody's idle connection keeps its control port busy: look at its process"

// noReply is the fault for a request that was sent and not answered in form.
func (c call) noReply(ctx context.Context, request ctrlframe.Frame, err error) *xfer.Fault {
	var bad *ctrlframe.Error
	f := c.failed(ctx, xfer.Socket, "no usable reply to the "+request.Type.String()+" request", err)
	switch {
	case f.Code != xfer.Socket:
	case errors.Is(err, os.ErrDeadlineExceeded):
		f.Side, f.Next = xfer.SidePeer, silentPort
	case !errors.As(err, &bad):
		f.Next = wrongPort
	case bad.Kind == ctrlframe.NotJSON || bad.Kind == ctrlframe.NotObject:
		f.Code = xfer.MalformedJSON
	case bad.Kind == ctrlframe.TooLong:
		f.Next = "if the peer has very many buffers, raise MC_HANDSHAKE_MAX_LENGTH here; else " + wrongPort
	}
	return f
}
