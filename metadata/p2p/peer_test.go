package p2p

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/wire/ctrlframe"
)

// scriptedPeer is the control port of a peer that behaves as a test says.
type scriptedPeer struct {
	name string
	port int

	mu       sync.Mutex
	requests []ctrlframe.Frame
}

// startPeer runs script on each connection, after the request has been read, and then closes it.
func startPeer(t testing.TB, script func(conn *net.TCPConn)) *scriptedPeer {
	t.Helper()
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	p := &scriptedPeer{name: l.Addr().String(), port: l.Addr().(*net.TCPAddr).Port}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(testLimit))
				f, err := ctrlframe.Read(conn, ctrlframe.MaxLimit)
				if err != nil {
					return
				}
				p.mu.Lock()
				p.requests = append(p.requests, f)
				p.mu.Unlock()
				script(conn.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		served.Wait()
	})
	return p
}

// replying returns a script that sends b.
func replying(b []byte) func(*net.TCPConn) {
	return func(conn *net.TCPConn) { conn.Write(b) }
}

func (p *scriptedPeer) received() []ctrlframe.Frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]ctrlframe.Frame(nil), p.requests...)
}

// fakeResolver knows one name, and remembers which family was asked for.
type fakeResolver struct {
	addresses []string
	err       error
	network   string
}

func (r *fakeResolver) LookupNetIP(ctx context.Context, network, _ string) ([]netip.Addr, error) {
	r.network = network
	if r.err != nil {
		return nil, r.err
	}
	var addresses []netip.Addr
	for _, a := range r.addresses {
		addresses = append(addresses, netip.MustParseAddr(a))
	}
	return addresses, ctx.Err()
}

// freePort returns a port at which nothing listens.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func nameOf(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
