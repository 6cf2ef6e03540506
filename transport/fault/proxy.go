package fault

//moonpath:goroutines

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/moonpath-io/moonpath/xfer"
)

// Proxy forwards TCP connections to a target, and does to them what its plan and its methods say. Its methods may be
// called from any goroutine.
type Proxy struct {
	plan    *Plan
	port    *port
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	target string
	conns  map[*connection]struct{}
	count  int           // connections so far
	gate   chan struct{} // closed while open; who finds it open waits for it to be closed
	resets chan struct{} // closed by each Resume, and made anew
	over   bool
	bytes  [2]atomic.Uint64
}

// maxConnections bounds the connections of one proxy; further ones are reset.
const maxConnections = 512

// Listen starts a proxy on a free port of 127.0.0.1 that forwards to target, a host:port. Nothing is sent to the target
// before somebody connects.
func Listen(target string, p *Plan) (*Proxy, error) {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return nil, &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageArgument, Cause: err, Detail: "the proxy's target is no host:port"}
	}
	port, err := openPort()
	if err != nil {
		return nil, &xfer.Fault{Code: xfer.Socket, Stage: xfer.StageArgument, Cause: err, Detail: "no port for a proxy"}
	}
	x := &Proxy{plan: p, port: port, target: target, conns: make(map[*connection]struct{}), gate: make(chan struct{}), resets: make(chan struct{})}
	close(x.gate)
	x.ctx, x.cancel = context.WithCancel(context.Background())
	p.join(x)
	x.serve(port.listener())
	return x, nil
}

// Addr returns what to connect to instead of the target: 127.0.0.1 and the proxy's port.
func (x *Proxy) Addr() *net.TCPAddr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: x.port.number}
}

// Retarget changes where further connections lead to.
func (x *Proxy) Retarget(target string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.target = target
}

// Connections returns how many connections there were, and how many are open.
func (x *Proxy) Connections() (all, open int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.count, len(x.conns)
}

// Bytes returns how many bytes were read from who sends in that direction.
func (x *Proxy) Bytes(d Direction) uint64 { return x.bytes[d].Load() }

// Stall stops all streams, those of further connections included, until Resume. What was read is held, and nothing more
// is read, so that senders come to a halt as with a peer that is frozen.
func (x *Proxy) Stall() {
	x.mu.Lock()
	defer x.mu.Unlock()
	select {
	case <-x.gate:
		x.gate = make(chan struct{})
	default:
	}
}

// Resume lets go of all streams that are stalled, by Stall or by a rule.
func (x *Proxy) Resume() {
	x.mu.Lock()
	defer x.mu.Unlock()
	select {
	case <-x.gate:
	default:
		close(x.gate)
	}
	close(x.resets)
	x.resets = make(chan struct{})
}

func (x *Proxy) stall()  { x.Stall() }
func (x *Proxy) resume() { x.Resume() }

// Cut ends all connections, as Finish (in order) or as Reset; any other action is Reset. It returns how many there were.
func (x *Proxy) Cut(how Action) int {
	x.mu.Lock()
	all := make([]*connection, 0, len(x.conns))
	for c := range x.conns {
		all = append(all, c)
	}
	x.mu.Unlock()
	for _, c := range all {
		if how == Finish {
			c.finish()
		} else {
			c.end(true)
		}
	}
	return len(all)
}

// Refuse makes the port refuse connections, as that of a process that has died does, until Accept. Connections that are
// open stay.
func (x *Proxy) Refuse() error { return x.port.refuse() }

// Swallow makes the port ignore further connections: their SYNs are not answered, as if the host were cut off, until
// Accept. Connections that are open stay.
func (x *Proxy) Swallow() error { return x.port.swallow() }

// Accept ends Refuse and Swallow. A client that was swallowed connects when it repeats its SYN.
func (x *Proxy) Accept() error {
	l, err := x.port.accept()
	if l != nil {
		x.serve(l)
	}
	return err
}

// Close ends the proxy: connections are reset, and nothing of it is left when Close returns.
func (x *Proxy) Close() error {
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
	x.plan.leave(x)
	x.cancel()
	err := x.port.close()
	x.Cut(Reset)
	x.running.Wait()
	return err
}

// serve accepts until l is closed.
func (x *Proxy) serve(l net.Listener) {
	x.spawn(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			x.take(c.(*net.TCPConn))
		}
	})
}

// spawn runs f in a goroutine that Close waits for; it reports whether it does.
func (x *Proxy) spawn(f func()) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return false
	}
	x.running.Go(f)
	return true
}

// take makes a connection of the proxy, or resets it.
func (x *Proxy) take(client *net.TCPConn) {
	x.mu.Lock()
	if x.over || len(x.conns) == maxConnections {
		x.mu.Unlock()
		reset(client)
		return
	}
	c := &connection{proxy: x, number: x.count, client: client, target: x.target, gone: make(chan struct{})}
	x.count++
	x.conns[c] = struct{}{}
	x.running.Go(c.run)
	x.mu.Unlock()
}

func (x *Proxy) forget(c *connection) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.conns, c)
}

// pass waits until the proxy is not stalled; false if the connection ends first.
func (x *Proxy) pass(gone <-chan struct{}) bool {
	x.mu.Lock()
	gate := x.gate
	x.mu.Unlock()
	select {
	case <-gate:
		return true
	case <-gone:
		return false
	}
}

// resumed returns a channel that the next Resume closes.
func (x *Proxy) resumed() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.resets
}
