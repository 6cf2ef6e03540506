package tcp_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/tcp"
	"github.com/moonpath-io/moonpath/transport/transporttest"
)

// The suite runs over real sockets, through a proxy that can kill and freeze what is behind it, against each kind of
// peer: one that says hello, one that does not (as published engines), and one to which version 1 is spoken.
func TestConformance(t *testing.T) {
	for _, kind := range []struct {
		name     string
		plain    bool // no moonpath object in the description
		protocol string
		without  map[transporttest.Capability]string
	}{
		{"moonpath peer", false, "2", nil},
		{"published peer", true, "2", map[transporttest.Capability]string{transporttest.Restarting: anonymous}},
		{"version 1", true, "1", map[transporttest.Capability]string{
			transporttest.Restarting:     anonymous,
			transporttest.ZeroAllocation: "version 1 has one request at a time on a connection, each with its own deadlines; it is not made for rates at which allocations count",
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			transporttest.Run(t, func(t *testing.T) transporttest.Pair {
				here, there := conformingEnd(t, "here", kind.protocol), conformingEnd(t, "there", kind.protocol)
				if kind.plain {
					there.Draft.Ext = nil
				}
				first := there.Transport
				p := startProxy(t, first.(*tcp.Transport).Port())
				there.Transport = behind{first, p}
				pair := transporttest.Pair{Initiator: here, Target: there, Kill: p.kill, Freeze: p.gate.Lock, Thaw: p.gate.Unlock, Close: p.close}
				if kind.plain {
					return pair
				}
				pair.Restart = func() transporttest.End {
					p.reset()
					if err := first.Close(t.Context()); err != nil {
						t.Error(err)
					}
					next := conformingEnd(t, "there", kind.protocol)
					p.port.Store(int64(next.Transport.(*tcp.Transport).Port()))
					next.Transport = behind{next.Transport, p}
					return next
				}
				return pair
			}, transporttest.Options{Goroutines: 32, Files: 32, Without: kind.without}) // the proxy's included
		})
	}
}

const anonymous = "a published peer does not say which life of it answers; one with the same memory at the same port cannot be told from the one before"

func conformingEnd(t *testing.T, name, protocol string) transporttest.End {
	t.Helper()
	values, _, err := config.Resolve(slices.Concat(config.Engine, config.TCP), config.Lookup(nil), config.Layer{Source: config.Code, Values: map[string]string{
		"tcp.protocol": protocol, "tcp.status_timeout": "1s", "tcp.connect_timeout": "2s",
	}})
	if err != nil {
		t.Fatal(err)
	}
	regions, own := new(mem.Table), rand.Uint64()|1
	opened, err := tcp.Open(t.Context(), transport.Env{Regions: regions, Incarnation: own, Bind: "127.0.0.1", Settings: values,
		Log: slog.New(slog.DiscardHandler), Obs: obs.NewGroup()})
	if err != nil {
		t.Fatal(err)
	}
	return transporttest.End{Transport: opened, Regions: regions,
		Draft: segment.Desc{Name: name, TCP: segment.Endpoint{Host: "127.0.0.1"}, Ext: &segment.Extension{Incarnation: own}}}
}

// behind is a transport that peers reach through a proxy.
type behind struct {
	transport.Transport
	proxy *proxy
}

func (b behind) Describe(d *segment.Desc) {
	b.Transport.Describe(d)
	d.TCP.Port = uint16(b.proxy.listener.Addr().(*net.TCPAddr).Port)
}

// Close ends the proxy's port with the transport's.
func (b behind) Close(ctx context.Context) error {
	b.proxy.listener.Close()
	return b.Transport.Close(ctx)
}

// proxy passes bytes on, unless its gate is locked.
type proxy struct {
	listener *net.TCPListener
	port     atomic.Int64 // of the target
	gate     sync.RWMutex
	running  sync.WaitGroup

	mu    sync.Mutex
	conns []*net.TCPConn
	dead  bool
}

func startProxy(t *testing.T, port int) *proxy {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l}
	p.port.Store(int64(port))
	p.running.Go(p.run)
	return p
}

func (p *proxy) run() {
	for {
		near, err := p.listener.AcceptTCP()
		if err != nil {
			return
		}
		far, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(p.port.Load())})
		if err != nil || !p.keep(near, far) {
			near.Close()
			if far != nil {
				far.Close()
			}
			continue
		}
		var done sync.WaitGroup
		done.Go(func() { p.pass(near, far) })
		done.Go(func() { p.pass(far, near) })
		p.running.Go(func() {
			done.Wait()
			near.Close()
			far.Close()
		})
	}
}

func (p *proxy) keep(cs ...*net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, cs...)
	return !p.dead
}

// pass copies one direction until it ends, and ends the other side in the same way.
func (p *proxy) pass(from, to *net.TCPConn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		p.gate.RLock()
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				err = failed
			}
		}
		p.gate.RUnlock()
		switch {
		case errors.Is(err, io.EOF):
			_ = to.CloseWrite()
			return
		case err != nil:
			for _, c := range []*net.TCPConn{from, to} {
				_ = c.SetLinger(0)
				c.Close()
			}
			return
		}
	}
}

// kill resets every connection and refuses new ones.
func (p *proxy) kill() {
	p.listener.Close()
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.reset()
}

// reset ends every connection.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.SetLinger(0)
		c.Close()
	}
}

func (p *proxy) close() {
	p.kill()
	p.running.Wait()
}
