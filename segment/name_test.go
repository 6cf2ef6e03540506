package segment_test

import (
	"strings"
	"testing"

	"github.com/moonpath-io/moonpath/segment"
)

func TestSplitName(t *testing.T) {
	for _, c := range []struct {
		name string
		host string
		port uint16
	}{
		{"127.0.0.1:12345", "127.0.0.1", 12345},
		{"node-7.rack:1", "node-7.rack", 1},
		{"node", "node", 0},
		{"", "", 0},
		{":80", "", 80},
		{"node:", "node", 0},
		// Ports that are none.
		{"node:65535", "node", 65535},
		{"node:65536", "node", 0},
		{"node:65537", "node", 0},
		{"node:-1", "node", 0},
		{"node:+1", "node", 0},
		{"node:12x", "node", 0},
		{"node: 12", "node", 0},
		{"node:99999999999999999999", "node", 0},
		// IPv6, in brackets and bare.
		{"[::1]:12345", "::1", 12345},
		{"[fe80::1%eth0]:12345", "fe80::1%eth0", 12345},
		{"[::1]", "::1", 0},
		{"[::1]12345", "::1", 12345},
		{"[::1]:", "::1", 0},
		{"[::1", "[::1", 0},
		{"[]:5", "", 5},
		{"::1", "::1", 0},
		{"2001:db8::7", "2001:db8::7", 0},
		{"::1:15622", "::1", 15622}, // five digits are no group of an address: published engines print it so
		{"::1:1562", "::1:1562", 0}, // four are
		{"fe80::1%eth0:12345", "fe80::1%eth0", 12345},
		{"fe80::1%eth0", "fe80::1%eth0", 0},
		{"a:b:c:9", "a:b:c", 9},
	} {
		if host, port := segment.SplitName(c.name); host != c.host || port != c.port {
			t.Errorf("SplitName(%q) is %q, %d; want %q, %d", c.name, host, port, c.host, c.port)
		}
	}
}

func TestJoinNameIsReadBack(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1":    "127.0.0.1:7",
		"node":         "node:7",
		"::1":          "[::1]:7",
		"fe80::1%eth0": "[fe80::1%eth0]:7",
	} {
		name := segment.JoinName(host, 7)
		if name != want {
			t.Errorf("JoinName(%q) is %q, want %q", host, name, want)
		}
		if h, p := segment.SplitName(name); h != host || p != 7 {
			t.Errorf("%q is read back as %q, %d", name, h, p)
		}
	}
}

func TestEndpointAddress(t *testing.T) {
	for host, want := range map[string]string{"127.0.0.1": "127.0.0.1:65535", "::1": "[::1]:65535"} {
		if got := (segment.Endpoint{Host: host, Port: 65535}).Address(); got != want {
			t.Errorf("address of %q is %q, want %q", host, got, want)
		}
	}
}

func FuzzSplitName(f *testing.F) {
	for _, seed := range []string{"127.0.0.1:1", "[::1]:1", "fe80::1%e:1", "[", "]", "%", ":", "[[]1", "[::1]1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		host, port := segment.SplitName(name)
		if port == 0 || strings.ContainsAny(host, "[]") {
			return // no host has brackets in its name
		}
		if h, p := segment.SplitName(segment.JoinName(host, port)); h != host || p != port {
			t.Errorf("%q is %q and %d, which joined are read as %q and %d", name, host, port, h, p)
		}
	})
}
