package p2p

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/xfer"
)

// Node is an engine's control port together with its calls to the ports of peers. It implements
// segment.Directory. All methods may be called from any goroutine.
type Node struct {
	options  Options
	port     int
	listener net.Listener
	resolver resolver
	counters counters

	published atomic.Pointer[publication] // nil before Publish and after Withdraw
	inbox     *inbox
	slots     *slots

	life   context.Context // ends when Close is called
	end    context.CancelFunc
	served sync.WaitGroup
}

var _ segment.Directory = (*Node)(nil)

// Listen binds the control port and serves it until Close. ctx bounds the call, not the node's life.
// Until the first Publish, peers that ask for the description are told that there is none.
func Listen(ctx context.Context, o Options) (*Node, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	l, err := bind(ctx, o)
	if err != nil {
		return nil, err
	}
	n := newNode(o, l.Addr().(*net.TCPAddr).Port)
	n.listener = l
	n.start()
	return n, nil
}

// newNode returns a node that does not listen.
func newNode(o Options, port int) *Node {
	n := &Node{options: o, port: port, resolver: net.DefaultResolver, counters: newCounters(o.Obs), inbox: newInbox()}
	n.slots = newSlots(n.counters.evicted)
	n.life, n.end = context.WithCancel(context.Background())
	o.Obs.Func("connections", n.slots.len)
	o.Obs.Func("notifications.waiting", n.inbox.len)
	return n
}

// Name returns the name under which peers open this engine's segment: the advertised host and the port,
// with IPv6 literals in brackets.
func (n *Node) Name() string { return segment.JoinName(n.options.Host, uint16(n.port)) }

// Port returns the control port.
func (n *Node) Port() int { return n.port }

// Close stops accepting, ends connections that carry no request, and lets the others finish until ctx
// ends, when it cuts them. Calls to peers that are under way fail with xfer.Closed. No goroutine of the
// node is left when it returns; the error says that replies were cut. Closing again does nothing.
func (n *Node) Close(ctx context.Context) error {
	n.end()
	n.listener.Close()
	cut := n.slots.close(ctx)
	n.served.Wait()
	if cut > 0 {
		return &xfer.Fault{Code: xfer.Interrupted, Stage: xfer.StageClose, Detail: "control port: replies to peers were cut", Cause: ctx.Err(),
			Next: "give Close more time; the peers see a broken connection and can ask again"}
	}
	return nil
}
