package p2p

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/moonpath-io/moonpath/xfer"
)

// bindTries is how many ports of the range are tried.
const bindTries = 500

// bind opens the listener of the control port. Two sockets cannot listen at one port; address reuse, which
// the net package switches on, only lets a port be taken again at once after its owner has ended.
func bind(ctx context.Context, o Options) (*net.TCPListener, error) {
	if o.Port != 0 {
		l, err := listen(ctx, o, o.Port)
		if err != nil {
			return nil, notBound(fmt.Sprintf("port %d", o.Port), "choose another port, or 0 for a random one", err)
		}
		return l, nil
	}
	candidates := rand.Perm(o.PortHigh - o.PortLow + 1)
	candidates = candidates[:min(len(candidates), bindTries)]
	for _, offset := range candidates {
		l, err := listen(ctx, o, o.PortLow+offset)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, notBound("a random port", "bind an address of this host, or none for all addresses", err)
		}
	}
	return nil, notBound(fmt.Sprintf("any of %d ports from %d to %d", len(candidates), o.PortLow, o.PortHigh),
		"widen the range of ports: MC_MIN_RPC_PORT and MC_MAX_RPC_PORT", syscall.EADDRINUSE)
}

func listen(ctx context.Context, o Options, port int) (*net.TCPListener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, network(o), net.JoinHostPort(o.Bind, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	if o.Backlog > 0 {
		if err := setBacklog(l.(*net.TCPListener), o.Backlog); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l.(*net.TCPListener), nil
}

// setBacklog listens once more, which changes nothing but the length of the queue.
func setBacklog(l *net.TCPListener, n int) error {
	conn, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), n) })
	return errors.Join(err, failed)
}

// network is IPv4 alone, as with published engines, unless something asks for more. A node that
// advertises an IPv6 literal must be reachable there, whatever the option says.
func network(o Options) string {
	if o.Bind == "" && !o.IPv6 {
		if a, err := netip.ParseAddr(o.Host); err != nil || a.Is4() {
			return "tcp4"
		}
	}
	return "tcp"
}

func notBound(what, next string, cause error) *xfer.Fault {
	return &xfer.Fault{Code: xfer.Socket, Stage: xfer.StageControl, Detail: "control port: cannot listen on " + what, Next: next, Cause: cause}
}
