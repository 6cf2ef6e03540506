package p2p

import (
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/moonpath-io/moonpath/xfer"
)

func TestListenTakesAPortOfTheRange(t *testing.T) {
	n := listenNode(t, nil)
	if n.Port() < DefaultPortLow || n.Port() > DefaultPortHigh {
		t.Errorf("port %d is outside %d to %d", n.Port(), DefaultPortLow, DefaultPortHigh)
	}
	if want := loopback + ":" + strconv.Itoa(n.Port()); n.Name() != want {
		t.Errorf("name %s, want %s", n.Name(), want)
	}
	mustAnswer(t, n)
}

func TestAPortCanBeTakenAgainAtOnce(t *testing.T) {
	n := listenNode(t, nil)
	mustAnswer(t, n) // leaves a connection in TIME_WAIT
	closeNode(t, n)
	mustAnswer(t, listenNode(t, func(o *Options) { o.Port = n.Port() }))
}

func TestNodesThatStartTogetherOwnDistinctPorts(t *testing.T) {
	var mu sync.Mutex
	seen := make(map[int]bool)
	var started sync.WaitGroup
	for range 64 {
		started.Go(func() {
			n := listenNode(t, nil)
			mu.Lock()
			defer mu.Unlock()
			if seen[n.Port()] {
				t.Errorf("port %d twice", n.Port())
			}
			seen[n.Port()] = true
		})
	}
	started.Wait()
}

func TestListenTakesTheOnlyFreePort(t *testing.T) {
	// A neighbour of a port that is in use is mostly free; the range is retried until it is.
	for {
		taken := listenNode(t, nil).Port()
		n, err := Listen(t.Context(), Options{Host: loopback, Bind: loopback, PortLow: taken, PortHigh: taken + 1})
		if err != nil {
			mustFault(t, err, xfer.Socket, xfer.StageControl)
			continue
		}
		defer closeNode(t, n)
		if n.Port() != taken+1 {
			t.Errorf("port %d, want %d", n.Port(), taken+1)
		}
		return
	}
}

func TestListenSaysWhyItCannotBind(t *testing.T) {
	taken := listenNode(t, nil).Port()
	_, err := Listen(t.Context(), Options{Host: loopback, Bind: loopback, PortLow: taken, PortHigh: taken})
	mustFault(t, err, xfer.Socket, xfer.StageControl, strconv.Itoa(taken), "MC_MIN_RPC_PORT")
	_, err = Listen(t.Context(), Options{Host: loopback, Bind: loopback, Port: taken})
	mustFault(t, err, xfer.Socket, xfer.StageControl, "port "+strconv.Itoa(taken), "address already in use")
	_, err = Listen(t.Context(), Options{Host: loopback, Bind: "192.0.2.1"})
	mustFault(t, err, xfer.Socket, xfer.StageControl, "192.0.2.1", "bind an address of this host")
}

func TestListenRefusesOptions(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		says    string
	}{
		"no host":         {Options{}, "no host"},
		"host with port":  {Options{Host: "node1:15000"}, `"node1:15000"`},
		"host in bracket": {Options{Host: "[::1]"}, `"[::1]"`},
		"name in bracket": {Options{Host: "[node1]"}, `"[node1]"`},
		"blank in host":   {Options{Host: "node 1"}, `"node 1"`},
		"port":            {Options{Host: loopback, Port: 65536}, "port 65536"},
		"negative port":   {Options{Host: loopback, Port: -1}, "port -1"},
		"range":           {Options{Host: loopback, PortLow: 2000, PortHigh: 1999}, "2000 to 1999"},
		"half a range":    {Options{Host: loopback, PortHigh: 1999}, "0 to 1999"},
		"default port":    {Options{Host: loopback, DefaultPort: 70000}, "70000"},
		"frame limit":     {Options{Host: loopback, MaxFrame: 1 << 30}, "1073741824"},
		"timeout":         {Options{Host: loopback, ConnectTimeout: -1}, "-1ns"},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := Listen(t.Context(), c.options)
			if err == nil {
				closeNode(t, n)
			}
			mustFault(t, err, xfer.InvalidArgument, xfer.StageArgument, c.says, "next: ")
		})
	}
}

func TestIPv6NodeIsReachableByItsName(t *testing.T) {
	probe, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 on the loopback interface: ", err)
	}
	probe.Close()
	for name, bind := range map[string]string{"one address": "::1", "all addresses": ""} {
		t.Run(name, func(t *testing.T) {
			n := listenNode(t, func(o *Options) { o.Host, o.Bind = "::1", bind })
			if want := "[::1]:" + strconv.Itoa(n.Port()); n.Name() != want {
				t.Errorf("name %s, want %s", n.Name(), want)
			}
			if err := listenNode(t, nil).Probe(t.Context(), n.Name()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWildcardIsIPv4OnlyByDefault(t *testing.T) {
	for name, c := range map[string]struct {
		ipv6 bool
		want string
	}{"default": {false, "0.0.0.0"}, "both families": {true, "::"}} {
		t.Run(name, func(t *testing.T) {
			n := listenNode(t, func(o *Options) { o.Bind, o.IPv6 = "", c.ipv6 })
			if got := n.listener.Addr().(*net.TCPAddr).IP.String(); got != c.want {
				t.Errorf("listens on %s, want %s", got, c.want)
			}
		})
	}
}
