package fault_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/transport/fault"
	"github.com/moonpath-io/moonpath/xfer"
)

// server accepts connections and lets the test use their ends.
type server struct {
	listener net.Listener
	accepted chan *net.TCPConn
	running  sync.WaitGroup
}

func listen(t testing.TB) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{listener: l, accepted: make(chan *net.TCPConn, 64)}
	s.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(s.accepted)
				return
			}
			s.accepted <- c.(*net.TCPConn)
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.running.Wait()
		for c := range s.accepted {
			c.Close()
		}
	})
	return s
}

func (s *server) addr() string { return s.listener.Addr().String() }

// proxied returns a proxy in front of a server.
func proxied(t testing.TB, rules ...fault.Rule) (*fault.Proxy, *server, *fault.Plan) {
	t.Helper()
	s, plan := listen(t), newPlan(t, 3, rules...)
	p, err := fault.Listen(s.addr(), plan)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if _, open := p.Connections(); open != 0 {
			t.Errorf("%d connections are open after Close", open)
		}
	})
	return p, s, plan
}

// connect returns both ends of a connection through the proxy.
func connect(t testing.TB, p *fault.Proxy, s *server) (client, far *net.TCPConn) {
	t.Helper()
	c, err := net.DialTCP("tcp", nil, p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	select {
	case far = <-s.accepted:
	case <-time.After(patience):
		t.Fatal("the target was not connected")
	}
	for _, e := range []*net.TCPConn{c, far} {
		e.SetDeadline(time.Now().Add(patience))
		t.Cleanup(func() { e.Close() })
	}
	return c, far
}

func send(t testing.TB, c net.Conn, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func wantBytes(t testing.TB, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Errorf("got %q (%v), want %q", got[:n], err, want)
	}
}

// wantEnd expects the end of a stream: in order, or by a reset.
func wantEnd(t testing.TB, c net.Conn, byReset bool) {
	t.Helper()
	n, err := c.Read(make([]byte, 1))
	if n != 0 || byReset != errors.Is(err, syscall.ECONNRESET) || !byReset && !errors.Is(err, io.EOF) {
		t.Errorf("the stream goes on or ends otherwise: %d bytes, %v; want a reset: %v", n, err, byReset)
	}
}

// wantSilence expects that nothing comes for a while.
func wantSilence(t testing.TB, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	defer c.SetReadDeadline(time.Now().Add(patience))
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, %v; want nothing", n, err)
	}
}

func TestProxyForwardsBothDirectionsAndTheirEnds(t *testing.T) {
	p, s, _ := proxied(t)
	client, far := connect(t, p, s)
	long := bytes.Repeat([]byte("moonpath"), 1<<17)
	var sending sync.WaitGroup
	sending.Go(func() {
		client.Write(long)
		client.CloseWrite()
	})
	got, err := io.ReadAll(far)
	sending.Wait()
	if err != nil || !bytes.Equal(got, long) {
		t.Errorf("%d bytes came, %v", len(got), err)
	}
	send(t, far, "answer") // the other direction is still open
	far.Close()
	wantBytes(t, client, "answer")
	wantEnd(t, client, false)
	if n := p.Bytes(fault.ToTarget); n != uint64(len(long)) {
		t.Errorf("%d bytes counted", n)
	}
	if all, _ := p.Connections(); all != 1 {
		t.Errorf("%d connections counted", all)
	}
}

func TestResetIsPassedOn(t *testing.T) {
	p, s, _ := proxied(t)
	client, far := connect(t, p, s)
	far.SetLinger(0)
	far.Close()
	wantEnd(t, client, true)
}

func TestStreamsGoWrongAtTheirPlace(t *testing.T) {
	for name, c := range map[string]struct {
		rules []fault.Rule
		want  string
	}{
		"drop":      {[]fault.Rule{fault.StreamRule{Do: fault.Drop, At: 2, Bytes: 3}}, "01567890abcdef"},
		"duplicate": {[]fault.Rule{fault.StreamRule{Do: fault.Duplicate, At: 2, Bytes: 3}}, "01234234567890abcdef"},
		"reorder":   {[]fault.Rule{fault.StreamRule{Do: fault.Reorder, At: 2, Bytes: 3}}, "01567234890abcdef"},
		"delay":     {[]fault.Rule{fault.StreamRule{Do: fault.Delay, At: 2, Delay: time.Millisecond}}, "01234567890abcdef"},
		"two": {[]fault.Rule{fault.StreamRule{Do: fault.Duplicate, At: 6, Bytes: 1}, fault.StreamRule{Do: fault.Drop, At: 1, Bytes: 2}},
			"0345667890abcdef"},
		"longer than the stream": {[]fault.Rule{fault.StreamRule{Do: fault.Reorder, At: 2, Bytes: 16}}, "01234567890abcdef"},
	} {
		for _, direction := range []fault.Direction{fault.ToTarget, fault.ToClient} {
			t.Run(name+" "+direction.String(), func(t *testing.T) {
				var rules []fault.Rule
				for _, r := range c.rules {
					r := r.(fault.StreamRule)
					r.Direction = direction
					rules = append(rules, r)
				}
				p, s, plan := proxied(t, rules...)
				from, to := connect(t, p, s)
				if direction == fault.ToClient {
					from, to = to, from
				}
				send(t, from, "01234567890abcdef")
				from.CloseWrite()
				got, err := io.ReadAll(to)
				if err != nil || string(got) != c.want {
					t.Errorf("got %q, %v, want %q", got, err, c.want)
				}
				if events, _ := plan.Events(); len(events) != len(rules) || !strings.Contains(events[0].String(), "connection 0 "+direction.String()) {
					t.Errorf("events %v", events)
				}
			})
		}
	}
}

func TestCorruptedBytesAreAlwaysOthers(t *testing.T) {
	const length = 1000
	p, s, _ := proxied(t, fault.StreamRule{Do: fault.Corrupt, At: 10, Bytes: length})
	client, far := connect(t, p, s)
	sent := make([]byte, length+20)
	send(t, client, string(sent))
	client.CloseWrite()
	got, err := io.ReadAll(far)
	if err != nil || len(got) != len(sent) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	for i, b := range got {
		if changed := i >= 10 && i < 10+length; changed != (b != 0) {
			t.Fatalf("byte %d is %#x", i, b)
		}
	}
}

func TestConnectionsAreCutAfterSomeBytes(t *testing.T) {
	for _, c := range []struct {
		do             fault.Action
		client, target bool // see a reset
	}{{fault.Reset, true, true}, {fault.Finish, false, false}} {
		t.Run(c.do.String(), func(t *testing.T) {
			p, s, _ := proxied(t, fault.StreamRule{Do: c.do, At: 5})
			client, far := connect(t, p, s)
			send(t, client, "01234")
			wantBytes(t, far, "01234")
			wantEnd(t, client, c.client)
			wantEnd(t, far, c.target)
		})
	}
	t.Run("half-close", func(t *testing.T) {
		p, s, _ := proxied(t, fault.StreamRule{Do: fault.HalfClose, At: 5})
		client, far := connect(t, p, s)
		send(t, client, "0123456789")
		wantBytes(t, far, "01234")
		wantEnd(t, far, false)
		send(t, far, "still here")
		wantBytes(t, client, "still here")
		send(t, client, "into nothing")
	})
}

func TestBlackHoleAcknowledgesAndForwardsNothing(t *testing.T) {
	p, s, _ := proxied(t, fault.StreamRule{Do: fault.Drop, At: 5})
	client, far := connect(t, p, s)
	for range 64 { // far more than any window holds
		send(t, client, strings.Repeat("0123456789abcdef", 1<<12))
	}
	wantBytes(t, far, "01234")
	wantSilence(t, far)
	client.Close()
	wantSilence(t, far)
}

func TestStallFillsTheSendersWindowAndResumeLosesNothing(t *testing.T) {
	for name, start := range map[string]func(p *fault.Proxy, plan *fault.Plan){
		"by a rule":    nil,
		"by the proxy": func(p *fault.Proxy, _ *fault.Plan) { p.Stall() },
		"by the plan":  func(_ *fault.Proxy, plan *fault.Plan) { plan.Stall() },
	} {
		t.Run(name, func(t *testing.T) {
			var rules []fault.Rule
			if start == nil {
				rules = append(rules, fault.StreamRule{Do: fault.Stall})
			}
			p, s, plan := proxied(t, rules...)
			client, far := connect(t, p, s)
			if start != nil {
				start(p, plan)
			}
			client.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			sent, err := client.Write(make([]byte, 64<<20))
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the window took %d bytes, %v", sent, err)
			}
			wantSilence(t, far)
			plan.Resume()
			client.CloseWrite()
			got, err := io.ReadAll(far)
			if err != nil || len(got) != sent {
				t.Errorf("%d of %d bytes came, %v", len(got), sent, err)
			}
		})
	}
}

func TestRulesPickConnections(t *testing.T) {
	p, s, _ := proxied(t, fault.StreamRule{Do: fault.Reset, When: fault.When{Skip: 1, Times: 1}})
	for i, cut := range []bool{false, true, false} {
		c, err := net.DialTCP("tcp", nil, p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		far := <-s.accepted
		defer far.Close()
		if cut {
			wantEnd(t, c, true)
			continue
		}
		send(t, c, "x")
		wantBytes(t, far, "x")
		t.Logf("connection %d is whole", i)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	const bound = 512
	p, s, _ := proxied(t)
	s.running.Go(func() { // else its channel fills
		for c := range s.accepted {
			io.Copy(io.Discard, c)
			c.Close()
		}
	})
	clients := make([]*net.TCPConn, bound)
	for i := range clients {
		c, err := net.DialTCP("tcp", nil, p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients[i] = c
	}
	if c, err := net.DialTCP("tcp", nil, p.Addr()); err == nil {
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		wantEnd(t, c, true)
	} else if !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	if all, _ := p.Connections(); all != bound {
		t.Errorf("%d connections were taken", all)
	}
}

func TestCutEndsAllConnections(t *testing.T) {
	for _, how := range []fault.Action{fault.Reset, fault.Finish} {
		p, s, _ := proxied(t)
		client, far := connect(t, p, s)
		send(t, client, "x")
		wantBytes(t, far, "x")
		if n := p.Cut(how); n != 1 {
			t.Errorf("%d connections were cut", n)
		}
		wantEnd(t, client, how == fault.Reset)
		wantEnd(t, far, how == fault.Reset)
		connect(t, p, s) // new ones go through
	}
}

func TestRefusedSwallowedAndAcceptedAgain(t *testing.T) {
	p, s, _ := proxied(t)
	client, far := connect(t, p, s)
	dial := func(limit time.Duration) error {
		d := net.Dialer{Timeout: limit}
		c, err := d.Dial("tcp", p.Addr().String())
		if err == nil {
			c.Close()
		}
		return err
	}
	if err := p.Refuse(); err != nil {
		t.Fatal(err)
	}
	if err := dial(patience); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("refused: %v", err)
	}
	if err := p.Swallow(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var network net.Error
		if err := dial(50 * time.Millisecond); !errors.As(err, &network) || !network.Timeout() {
			t.Errorf("swallowed: %v", err)
		}
	}
	if err := p.Accept(); err != nil {
		t.Fatal(err)
	}
	if err := p.Accept(); err != nil { // once more
		t.Error(err)
	}
	connect(t, p, s)
	send(t, client, "all the while")
	wantBytes(t, far, "all the while")
}

func TestTargetThatIsGoneResetsTheClient(t *testing.T) {
	s := listen(t)
	s.listener.Close()
	p, err := fault.Listen(s.addr(), newPlan(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	// The reset may come so soon that the dial sees it.
	if c, err := net.DialTCP("tcp", nil, p.Addr()); err == nil {
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		wantEnd(t, c, true)
	} else if !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	other := listen(t)
	p.Retarget(other.addr())
	connect(t, p, other)
}

func TestCloseEndsWhateverIsUnderWay(t *testing.T) {
	for name, rule := range map[string]fault.StreamRule{
		"stall": {Do: fault.Stall}, "delay": {Do: fault.Delay, Delay: time.Hour}, "black hole": {Do: fault.Drop}, "half-close": {Do: fault.HalfClose},
		"reorder": {Do: fault.Reorder, Bytes: 1 << 10}, "finish": {Do: fault.Finish},
	} {
		t.Run(name, func(t *testing.T) {
			p, s, _ := proxied(t, rule)
			client, _ := connect(t, p, s)
			client.Write([]byte("x"))
			closed := make(chan error, 1)
			go func() { closed <- p.Close() }()
			select {
			case err := <-closed:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(patience):
				t.Fatal("Close does not return")
			}
			if err := p.Accept(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("accepting after Close: %v", err)
			}
		})
	}
}

func TestListenRefusesATargetThatIsNone(t *testing.T) {
	if _, err := fault.Listen("nowhere", newPlan(t, 1)); xfer.CodeOf(err) != xfer.InvalidArgument {
		t.Errorf("got %v", err)
	}
}
