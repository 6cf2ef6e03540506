package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// fault dials and expects a typed error.
func (h *host) fault(p *peer) *xfer.Fault {
	h.t.Helper()
	_, _, err := h.tryDial(p)
	var f *xfer.Fault
	if !errors.As(err, &f) {
		h.t.Fatalf("got %v, want a fault", err)
	}
	if f.Stage != xfer.StageDial || f.Path != Name || f.Peer == "" || f.NextStep() == "" {
		h.t.Errorf("incomplete fault %+v", f)
	}
	return f
}

// closedPort is a port on which nobody listens.
func closedPort(t *testing.T) uint16 {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

func TestAClosedPortIsARefusedConnection(t *testing.T) {
	h := openHost(t)
	d := &segment.Desc{Name: "gone", TCP: segment.Endpoint{Host: "127.0.0.1", Port: closedPort(t), Version: 2}}
	f := h.fault(&peer{desc: d})
	if f.Code != xfer.Socket || f.Errno() != syscall.ECONNREFUSED || !strings.Contains(f.Error(), d.TCP.Address()) {
		t.Errorf("got %v", f)
	}
}

func TestAHostThatDoesNotResolveIsSaidSo(t *testing.T) {
	h := openHost(t, "tcp.connect_timeout", "2s")
	for _, host := range []string{"no-such-host.invalid", "127.0.0.1:80"} {
		f := h.fault(&peer{desc: &segment.Desc{Name: "odd", TCP: segment.Endpoint{Host: host, Port: 1, Version: 2}}})
		if f.Code != xfer.DNS && f.Code != xfer.Deadline {
			t.Errorf("%s: %v", host, f)
		}
	}
}

// fullListener accepts nothing, and its backlog is full: the kernel ignores further connections.
func fullListener(t *testing.T) *segment.Desc {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port := name.(*syscall.SockaddrInet4).Port
	for { // until one does not get through
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address("127.0.0.1", port))
		cancel()
		if err != nil {
			break
		}
		t.Cleanup(func() { c.Close() })
	}
	return &segment.Desc{Name: "full", TCP: segment.Endpoint{Host: "127.0.0.1", Port: uint16(port), Version: 2}}
}

func TestAPortThatSwallowsConnectionsIsBoundedByTheConnectTimeout(t *testing.T) {
	h := openHost(t, "tcp.connect_timeout", "300ms")
	d := fullListener(t)
	begin := time.Now()
	f := h.fault(&peer{desc: d})
	if took := time.Since(begin); f.Code != xfer.Deadline || took > 3*time.Second {
		t.Errorf("%v after %v", f, took)
	}
}

func TestDialingEndsWithItsContext(t *testing.T) {
	h := openHost(t, "tcp.connect_timeout", "59m")
	mute := listenRaw(t, func(c *conn) { c.stand() })
	for _, d := range []*segment.Desc{fullListener(t), mute.desc(2, 5)} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := h.tr.Dial(ctx, &peer{desc: d}, newSource(t))
			done <- err
		}()
		always(t, 20*time.Millisecond, "dialing ended too early", func() bool { return len(done) == 0 })
		cancel()
		if err := within(t, done, "the end of dialing"); err == nil {
			t.Error("dialed")
		}
	}
}

func TestDialingAfterCloseIsRefused(t *testing.T) {
	there := openHost(t)
	values := openHost(t)
	tr, err := Open(t.Context(), values.env)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = tr.Dial(t.Context(), &peer{desc: there.desc()}, newSource(t))
	if xfer.CodeOf(err) != xfer.Closed {
		t.Errorf("got %v", err)
	}
}

// TestHelloFindsOutWhoAnswers: the descriptor promises a moonpath engine, and something else owns the port.
func TestHelloFindsOutWhoAnswers(t *testing.T) {
	const want = 0x1234
	answer := func(a tcpframe.HelloAnswer) func(c *conn) {
		return func(c *conn) {
			c.header()
			c.put(helloAnswer(a))
			c.waitEnd()
		}
	}
	for name, x := range map[string]struct {
		serve func(c *conn)
		code  xfer.Code
	}{
		"a published engine: status 1 and a close": {func(c *conn) { c.header(); c.put(status(1)) }, xfer.WrongPeer},
		"status 1 and no close":                    {func(c *conn) { c.header(); c.put(status(1)); c.waitEnd() }, xfer.WrongPeer},
		"an old engine that closes":                {func(c *conn) { c.header() }, xfer.Socket},
		"a reset":                                  {func(c *conn) { c.header(); c.reset() }, xfer.Socket},
		"another incarnation":                      {answer(tcpframe.HelloAnswer{Code: tcpframe.WrongIncarnation, Incarnation: want + 1}), xfer.WrongPeer},
		"another incarnation that says ok":         {answer(tcpframe.HelloAnswer{Code: tcpframe.OK, Incarnation: want + 1, Version: 1}), xfer.WrongPeer},
		"a version that was not offered":           {answer(tcpframe.HelloAnswer{Code: tcpframe.OK, Incarnation: want, Version: 2}), xfer.WrongPeer},
		"no version in common":                     {answer(tcpframe.HelloAnswer{Code: tcpframe.VersionRejected, Incarnation: want}), xfer.WrongPeer},
		"an answer cut short": {func(c *conn) {
			c.header()
			c.put(helloAnswer(tcpframe.HelloAnswer{Code: tcpframe.OK, Incarnation: want, Version: 1})[:20])
		}, xfer.WrongPeer},
		"text":                               {func(c *conn) { c.header(); c.put([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")) }, xfer.WrongPeer},
		"an old engine that does not answer": {func(c *conn) { c.header(); c.waitEnd() }, xfer.Deadline},
	} {
		t.Run(name, func(t *testing.T) {
			srv := listenRaw(t, x.serve)
			h := openHost(t, "tcp.connect_timeout", "500ms")
			p := &peer{desc: srv.desc(2, want)}
			begin := time.Now()
			f := h.fault(p)
			if took := time.Since(begin); f.Code != x.code || took > 5*time.Second {
				t.Errorf("%v after %v, want %v", f, took, x.code)
			}
			if got := p.refreshed(); got != 1 || p.left < 100*time.Millisecond {
				t.Errorf("the description was fetched %d times, with %v left, want once", got, p.left)
			}
			if f.Retry != xfer.Refresh {
				t.Errorf("it does not say that a fresh description may help: %+v", f)
			}
		})
	}
}

// TestADeadPortIsReasonToAskWhereThePeerIsNow: a restarted engine has another data port.
func TestADeadPortIsReasonToAskWhereThePeerIsNow(t *testing.T) {
	h := openHost(t)
	d := &segment.Desc{Name: "gone", TCP: segment.Endpoint{Host: "127.0.0.1", Port: closedPort(t), Version: 2}, Ext: &segment.Extension{Incarnation: 4, HelloVersion: 1}}
	for _, ext := range []*segment.Extension{nil, {Incarnation: 4, HelloVersion: 1}} {
		d.Ext = ext
		p := &peer{desc: d}
		h.fault(p)
		if got := p.refreshed(); got != 1 {
			t.Errorf("the description was fetched %d times, want once", got)
		}
	}
}

// TestARouteNeverReachesAnotherLifeOfItsPeer: connections end, and another engine answers at the same port.
func TestARouteNeverReachesAnotherLifeOfItsPeer(t *testing.T) {
	for name, incarnation := range kinds {
		t.Run(name, func(t *testing.T) {
			g := &target{version: 2, incarnation: incarnation}
			written := make(chan struct{}, 1000)
			srv := listenRaw(t, func(c *conn) {
				if c.number <= 2 {
					g.serve(c)
					return
				}
				if incarnation == 0 {
					if _, _, ok := c.header(); ok {
						written <- struct{}{}
					}
					return
				}
				c.header()
				c.put(helloAnswer(tcpframe.HelloAnswer{Code: tcpframe.WrongIncarnation, Incarnation: incarnation + 1}))
				if _, _, ok := c.header(); ok {
					written <- struct{}{}
				}
			})
			h := openHost(t, "tcp.lanes", "2")
			m := h.memory(1<<20, false)
			p := &peer{desc: srv.desc(2, incarnation)}
			_, s, err := h.tryDial(p)
			if err != nil {
				t.Fatal(err)
			}
			s.do(aWrite(m), write(m, 0, 100000, remoteBase))
			p.mu.Lock()
			p.next = srv.desc(2, incarnation)
			if incarnation == 0 {
				p.next.TCP.Port++ // all that tells two published engines apart
			} else {
				p.next.Ext.Incarnation++
			}
			p.mu.Unlock()
			srv.endAll(s.route)
			for range 5 {
				ks := []*task{aWrite(m), write(m, 0, 100000, remoteBase), aRead(m).suspect()}
				s.submit(ks...)
				s.finish(ks...)
				for _, k := range ks {
					if codeOf(k.fault) != xfer.WrongPeer || k.certainty != xfer.Confirmed {
						t.Fatalf("got %v (%v)", k.fault, k.certainty)
					}
				}
			}
			if len(written) > 0 {
				t.Error("a request reached the other engine")
			}
		})
	}
}

func TestTheDescriptionSaysWhatPeersNeed(t *testing.T) {
	h := openHost(t)
	h.memory(4096, true)
	d := h.desc()
	want := segment.Desc{Name: "peer", Protocols: []string{"tcp"}, TCP: segment.Endpoint{Host: "127.0.0.1", Port: uint16(h.tr.Port()), Version: 2},
		Buffers: []segment.Buffer{{Addr: d.Buffers[0].Addr, Len: 4096, Protocols: []string{"tcp"}}},
		Ext:     &segment.Extension{Incarnation: h.env.Incarnation, HelloVersion: 1}}
	if diff := cmp.Diff(want, *d); diff != "" {
		t.Error(diff)
	}
}

func TestOffersSayWhatIsMissing(t *testing.T) {
	h := openHost(t)
	good := segment.Desc{Name: "x", Protocols: []string{"rdma", Name}, TCP: segment.Endpoint{Host: "127.0.0.1", Port: 5, Version: 2}}
	for want, change := range map[string]func(d *segment.Desc){
		"":          func(*segment.Desc) {},
		"protocol":  func(d *segment.Desc) { d.Protocols = []string{"rdma"} },
		"endpoint":  func(d *segment.Desc) { d.TCP.Port = 0 },
		"endpoint ": func(d *segment.Desc) { d.TCP.Host = "" },
	} {
		d := good
		change(&d)
		got := ""
		for _, o := range h.tr.Offers(&d, nil) {
			for _, r := range o.Refused {
				got += r.Code
			}
		}
		if got != strings.TrimSpace(want) {
			t.Errorf("refused because of %q, want %q", got, want)
		}
	}
}

func TestListenersTakeThePortThatIsAskedForOrSayWhyNot(t *testing.T) {
	h := openHost(t)
	env := h.env
	env.Port = int(closedPort(t))
	tr, err := Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close(t.Context())
	if tr.Port() != env.Port {
		t.Errorf("port %d, want %d", tr.Port(), env.Port)
	}
	for _, bad := range []struct {
		bind string
		port int
	}{{"127.0.0.1", env.Port}, {"192.0.2.1", 0}, {"no-such-host.invalid", 0}} {
		env := h.env
		env.Bind, env.Port = bad.bind, bad.port
		tr, err := Open(t.Context(), env)
		var f *xfer.Fault
		if !errors.As(err, &f) || f.Code != xfer.Socket || f.Next == "" {
			t.Errorf("%s:%d: got %v", bad.bind, bad.port, err)
		}
		if err == nil {
			tr.Close(t.Context())
		}
	}
}

func TestThePortRangeIsKept(t *testing.T) {
	var open []*host
	for range 5 {
		h := openHost(t, "port.min", "20000", "port.max", "20006")
		if p := h.tr.Port(); p < 20000 || p > 20006 {
			t.Errorf("port %d", p)
		}
		open = append(open, h)
	}
	seen := map[int]bool{}
	for _, h := range open {
		if seen[h.tr.Port()] {
			t.Error("two transports share a port")
		}
		seen[h.tr.Port()] = true
	}
	values := openHost(t, "port.min", fmt.Sprint(open[0].tr.Port()), "port.max", fmt.Sprint(open[0].tr.Port()+1000))
	if values.tr.Port() == open[0].tr.Port() {
		t.Error("a port was bound twice")
	}
}
