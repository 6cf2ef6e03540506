package p2p

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/wire/segjson"
	"github.com/moonpath-io/moonpath/xfer"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestLookupReadsWhatPublishedEnginesSend(t *testing.T) {
	tcp := []string{"tcp"}
	want := map[string]*segment.Desc{
		// The data host of a descriptor without one is the host that was opened.
		"older build": {Name: "10.0.0.1:15001", Protocols: tcp, TCP: segment.Endpoint{Host: loopback, Port: 15002, Version: 2},
			Buffers: []segment.Buffer{{Addr: 0x1000, Len: 8192, Location: "10.0.0.1:15001", Protocols: tcp}}},
		"0.3.13.post1": {Name: "127.0.0.1:16683", Protocols: tcp, TCP: segment.Endpoint{Host: loopback, Port: 15676, Version: 2},
			Buffers: []segment.Buffer{
				{Addr: 140137227468800, Len: 4096, Location: "127.0.0.1:16683", Protocols: tcp},
				{Addr: 140137227476992, Len: 8192, Location: "127.0.0.1:16683", Protocols: tcp}}},
	}
	n := silentNode(t, loopback, 1)
	for _, x := range loadExchanges(t, "testdata/descriptors.txt") {
		peer := startPeer(t, replying(x.reply))
		got, err := n.Lookup(t.Context(), peer.name)
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		if diff := cmp.Diff(want[x.name], got); diff != "" {
			t.Errorf("%s: -want +got\n%s", x.name, diff)
		}
		if f := peer.received(); len(f) != 1 || string(ctrlframe.Append(nil, f[0])) != string(x.request) {
			t.Errorf("%s: sent %v", x.name, f)
		}
	}
}

func TestLookupBetweenNodes(t *testing.T) {
	a, b := listenNode(t, nil), listenNode(t, nil)
	both := []string{"tcp", "shm"}
	want := &segment.Desc{Name: a.Name(), Protocols: both, TCP: segment.Endpoint{Host: loopback, Port: 15002, Version: 2},
		Ext: &segment.Extension{Incarnation: 7, HelloVersion: 1},
		Buffers: []segment.Buffer{
			{Addr: 1 << 47, Len: 1 << 40, Location: a.Name(), Protocols: both},
			{Addr: 1 << 63, Len: 1, Location: a.Name(), Protocols: both[:1]}}}
	publishDesc(t, a, want)
	got, err := b.Lookup(t.Context(), a.Name())
	if err != nil || !cmp.Equal(want, got) {
		t.Errorf("%v: %s", err, cmp.Diff(want, got))
	}
	publish(t, a, 3)
	if got, err = b.Lookup(t.Context(), a.Name()); err != nil || len(got.Buffers) != 3 {
		t.Errorf("after another publication: %v, %v", got, err)
	}
	if err := a.Withdraw(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = b.Lookup(t.Context(), a.Name())
	mustFault(t, err, xfer.Metadata, xfer.StageResolve, a.Name(), "not available", "installed a transport")
	if !errors.Is(err, segjson.ErrNotAvailable) {
		t.Error("the cause is lost")
	}
}

func TestLookupOfOwnNameNeedsNoNetwork(t *testing.T) {
	for host, name := range map[string]string{loopback: "127.0.0.1:15001", "::1": "[::1]:15001", "node1": "node1:15001"} {
		n := silentNode(t, host, 15001) // serves no port
		_, err := n.Lookup(t.Context(), name)
		mustFault(t, err, xfer.Metadata, xfer.StageResolve, name, "published nothing")
		want := publish(t, n, 2)
		got, err := n.Lookup(t.Context(), name)
		if err != nil || !cmp.Equal(want, got) {
			t.Fatalf("%v: %s", err, cmp.Diff(want, got))
		}
		if got.Gen = 9; want.Gen == 9 {
			t.Error("the caller can change what is published")
		}
	}
	n := silentNode(t, loopback, DefaultPeerPort)
	publish(t, n, 1)
	if _, err := n.Lookup(t.Context(), loopback); err != nil {
		t.Errorf("own name without port: %v", err)
	}
}

func TestLookupOfLyingPeers(t *testing.T) {
	good := replyNamed(t, "testdata/descriptors.txt", "older build")
	body := string(good[9:])
	deep := strings.Repeat("[", 1100) + strings.Repeat("]", 1100)
	metadata := func(body string) []byte { return frame(ctrlframe.Metadata, body) }
	replace := func(old, new string) []byte {
		if !strings.Contains(body, old) {
			t.Fatalf("nothing to replace: %q", old)
		}
		return metadata(strings.Replace(body, old, new, 1))
	}
	for name, c := range map[string]struct {
		reply []byte
		code  xfer.Code // OK: the descriptor is read all the same
		says  string
	}{
		"nothing":               {nil, xfer.Socket, "control port of a transfer engine"},
		"half a length":         {good[:4], xfer.Socket, "after 4 of 8 bytes"},
		"half a reply":          {good[:100], xfer.Socket, "after 92 of 193 bytes"},
		"too long a reply":      {append(good[:len(good):len(good)], "garbage"...), xfer.OK, ""},
		"length 0":              {make([]byte, 8), xfer.Socket, "0 bytes"},
		"text of HTTP":          {[]byte("HTTP/1.1 400 Bad Request\r\n"), xfer.Socket, `"HTTP/1.1"`},
		"length beyond limit":   {[]byte{1, 0, 16, 0, 0, 0, 0, 0, 1}, xfer.Socket, "MC_HANDSHAKE_MAX_LENGTH"},
		"another type":          {frame(ctrlframe.Probe, body), xfer.Socket, "type probe"},
		"old protocol":          {ctrlframe.Append(nil, ctrlframe.Frame{Legacy: true, Body: []byte(body)}), xfer.Socket, "type old-protocol"},
		"text":                  {frame('h', "ello"), xfer.MalformedJSON, "not JSON"},
		"unknown type byte":     {frame(4, body), xfer.Socket, "unknown message type 0x4"},
		"not JSON":              {metadata("xx"), xfer.MalformedJSON, "not JSON"},
		"open JSON":             {metadata(body[:50]), xfer.MalformedJSON, "not JSON"},
		"no JSON":               {metadata(""), xfer.MalformedJSON, "not JSON"},
		"deep unknown key":      {replace(`"name":"10.0.0.1:15001","protocol"`, `"x":`+deep+`,"name":"10.0.0.1:15001","protocol"`), xfer.OK, ""},
		"deep array":            {metadata(deep), xfer.Metadata, "not available"},
		"deep name":             {replace(`"name":"10.0.0.1:15001","protocol"`, `"name":`+deep+`,"protocol"`), xfer.Metadata, "name"},
		"null":                  {metadata("null"), xfer.Metadata, "not available"},
		"array":                 {metadata("[1]"), xfer.Metadata, "not available"},
		"number":                {metadata("0"), xfer.Metadata, "not available"},
		"no protocol":           {metadata("{}"), xfer.Metadata, "not available"},
		"protocol of number":    {replace(`"protocol":"tcp"`, `"protocol":1`), xfer.Metadata, "protocol"},
		"port of string":        {replace(`"tcp_data_port":15002`, `"tcp_data_port":"15002"`), xfer.Metadata, "tcp_data_port"},
		"port above 65535":      {replace(`15002`, `70000`), xfer.Metadata, "tcp_data_port"},
		"negative address":      {replace(`"addr":4096`, `"addr":-4096`), xfer.Metadata, "buffers[0].addr"},
		"zero address":          {replace(`"addr":4096`, `"addr":0`), xfer.Metadata, "buffers[0].addr"},
		"range that wraps":      {replace(`"length":8192`, `"length":18446744073709551615`), xfer.Metadata, "buffers[0].length"},
		"buffers are numbers":   {replace(`"buffers":[`, `"buffers":[1,`), xfer.Metadata, "buffers[0]"},
		"useless moonpath part": {replace(`"name":"10.0.0.1:15001","protocol"`, `"moonpath":[1],"name":"a:1","protocol"`), xfer.OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := silentNode(t, loopback, 1)
			peer := startPeer(t, replying(c.reply))
			d, err := n.Lookup(t.Context(), peer.name)
			if c.code == xfer.OK {
				if err != nil || len(d.Buffers) != 1 || d.Ext != nil {
					t.Errorf("got %v, %v", d, err)
				}
				return
			}
			f := mustFault(t, err, c.code, xfer.StageResolve, peer.name, c.says)
			if d != nil || f.NextStep() == "" {
				t.Errorf("got %v, next step %q", d, f.NextStep())
			}
		})
	}
}

func TestClientClosesRightAfterTheReply(t *testing.T) {
	reply := replyNamed(t, "testdata/descriptors.txt", "older build")
	waited := make(chan time.Duration, 1)
	peer := startPeer(t, func(conn *net.TCPConn) {
		conn.Write(reply)
		start := time.Now()
		io.Copy(io.Discard, conn) // this end stays open, as a published engine's does for 5 s
		waited <- time.Since(start)
	})
	if _, err := silentNode(t, loopback, 1).Lookup(t.Context(), peer.name); err != nil {
		t.Fatal(err)
	}
	if got := <-waited; got > time.Second {
		t.Errorf("the client closed %v after the reply", got)
	}
}

func TestPortOfNames(t *testing.T) {
	peer := startPeer(t, replying(frame(ctrlframe.Probe, "null")))
	n := silentNode(t, loopback, 1)
	n.options.DefaultPort = peer.port
	for _, name := range []string{loopback, loopback + ":" + strconv.Itoa(peer.port), loopback + ":99999", loopback + ":x"} {
		if err := n.Probe(t.Context(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnusablePortIsLogged(t *testing.T) {
	for name, want := range map[string]int{"node1": 0, "[::1]": 0, "::1": 0, "node1:1": 0, "node1:99999": 1, "node1:": 1, "[::1]:x": 1} {
		log := &logBook{}
		n := silentNode(t, loopback, 1)
		n.options.Log = log.logger()
		if n.target(name); len(log.lines()) != want {
			t.Errorf("%s: logged %q, want %d lines", name, log.lines(), want)
		}
	}
}

func TestResolution(t *testing.T) {
	peer := startPeer(t, replying(frame(ctrlframe.Probe, "null")))
	for name, c := range map[string]struct {
		ipv6    bool
		network string
	}{"IPv4 only": {false, "ip4"}, "both families": {true, "ip"}} {
		t.Run(name, func(t *testing.T) {
			n := silentNode(t, loopback, 1)
			n.options.IPv6 = c.ipv6
			// The first address of each family leads nowhere; IPv4 may come in the form of IPv6.
			r := &fakeResolver{addresses: []string{"127.0.0.2", "::ffff:127.0.0.1"}}
			n.resolver = r
			if err := n.Probe(t.Context(), nameOf("node1", peer.port)); err != nil || r.network != c.network {
				t.Errorf("asked for %q: %v", r.network, err)
			}
			got, err := n.resolve(t.Context(), call{}, "::1")
			if err != nil || got[0].String() != "::1" {
				t.Errorf("a literal of the other family: %v, %v", got, err)
			}
			r.addresses = []string{"::ffff:127.0.0.1", "::1", "127.0.0.2", "::2"}
			got, err = n.resolve(t.Context(), call{}, "node1")
			if err != nil || got[0].String() != "::1" || got[1].String() != "::2" || got[2].String() != loopback {
				t.Errorf("order %v, %v", got, err)
			}
		})
	}
}

func TestUnreachablePeers(t *testing.T) {
	n := silentNode(t, loopback, 1)
	r := &fakeResolver{err: &net.DNSError{Err: "no such host", Name: "node1", IsNotFound: true}}
	n.resolver = r
	_, err := n.Lookup(t.Context(), "node1:15000")
	mustFault(t, err, xfer.DNS, xfer.StageResolve, "node1:15000", "no such host", "host part")
	r.err = nil
	_, err = n.Lookup(t.Context(), "node1:15000")
	mustFault(t, err, xfer.DNS, xfer.StageResolve, "no address")
	for _, name := range []string{"", ":15000"} {
		mustFault(t, n.Probe(t.Context(), name), xfer.DNS, xfer.StageControl, "no host", "host:port")
	}
	dead := nameOf(loopback, freePort(t))
	mustFault(t, n.Probe(t.Context(), dead), xfer.Socket, xfer.StageControl, dead, "connection refused")
	r.addresses = []string{"127.0.0.1", "127.0.0.2"}
	f := mustFault(t, n.Notify(t.Context(), nameOf("node1", freePort(t)), Notification{}), xfer.Socket, xfer.StageControl, "127.0.0.1", "127.0.0.2")
	if f.Remote != xfer.Confirmed {
		t.Error("nothing was sent, so there is no doubt")
	}
}

func TestResolutionIsBoundedInTime(t *testing.T) {
	n := silentNode(t, loopback, 1)
	n.options.ConnectTimeout = 10 * time.Millisecond
	n.resolver = hangingResolver{}
	mustFault(t, n.Probe(t.Context(), "node1:1"), xfer.DNS, xfer.StageControl, "node1", "deadline")
}

type hangingResolver struct{}

func (hangingResolver) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestConnectIsBoundedInTime asks a port whose queue of connections is full, so that the kernel answers
// no more.
func TestConnectIsBoundedInTime(t *testing.T) {
	port := fullPort(t)
	n := silentNode(t, loopback, 1)
	n.options.ConnectTimeout = 50 * time.Millisecond
	start := time.Now()
	mustFault(t, n.Probe(t.Context(), nameOf(loopback, port)), xfer.Socket, xfer.StageControl, "cannot connect", "timeout")
	if took := time.Since(start); took > testLimit {
		t.Errorf("took %v", took)
	}
}

// fullPort returns a listening port that accepts nothing and has no room left.
func fullPort(t *testing.T) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port := bound.(*syscall.SockaddrInet4).Port
	for {
		conn, err := net.DialTimeout("tcp", nameOf(loopback, port), 200*time.Millisecond)
		if err != nil {
			return port
		}
		t.Cleanup(func() { conn.Close() })
	}
}

func TestSettledAddressesAreAskedOnce(t *testing.T) {
	// Both addresses lead to the same peer, which counts.
	broken := map[string]struct {
		reply  []byte
		ask    func(*Node, string) error
		wanted int
	}{
		"probe without reply":  {nil, func(n *Node, name string) error { return n.Probe(t.Context(), name) }, 2},
		"probe of no JSON":     {frame(ctrlframe.Probe, "xx"), func(n *Node, name string) error { return n.Probe(t.Context(), name) }, 1},
		"notify without reply": {nil, func(n *Node, name string) error { return n.Notify(t.Context(), name, Notification{}) }, 1},
	}
	for name, c := range broken {
		t.Run(name, func(t *testing.T) {
			peer := startPeer(t, replying(c.reply))
			n := silentNode(t, loopback, 1)
			n.resolver = &fakeResolver{addresses: []string{loopback, loopback}}
			err := c.ask(n, nameOf("node1", peer.port))
			if got := len(peer.received()); err == nil || got != c.wanted {
				t.Errorf("%d requests, want %d: %v", got, c.wanted, err)
			}
		})
	}
}

var ignoreGen = cmpopts.IgnoreFields(segment.Desc{}, "Gen")

func TestCacheOverNodes(t *testing.T) {
	a, b := listenNode(t, nil), listenNode(t, nil)
	want := publish(t, a, 2)
	cache := segment.NewCache(b)
	peer, err := cache.Open(t.Context(), a.Name())
	if err != nil || !cmp.Equal(want, peer.Desc(), ignoreGen) {
		t.Fatalf("%v: %s", err, cmp.Diff(want, peer.Desc(), ignoreGen))
	}
	_, err = cache.Open(t.Context(), nameOf(loopback, freePort(t)))
	mustFault(t, err, xfer.Socket, xfer.StageResolve, "connection refused")
}
