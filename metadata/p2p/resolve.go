package p2p

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/xfer"
)

// resolver is the part of net.Resolver that is needed.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// target takes a peer's name apart.
func (n *Node) target(name string) (host string, port int) {
	host, given := segment.SplitName(name)
	if given != 0 {
		return host, int(given)
	}
	if name != host && name != "["+host+"]" {
		n.options.Log.Warn("the port in the segment name is not usable; the default port is asked", "name", name, "port", n.options.DefaultPort)
	}
	return host, n.options.DefaultPort
}

// isOwn reports whether name leads to this node, as far as can be told without resolving it.
func (n *Node) isOwn(name string) bool {
	host, port := segment.SplitName(name)
	if port == 0 {
		port = uint16(n.options.DefaultPort)
	}
	return host == n.options.Host && int(port) == n.port
}

// resolve returns the addresses of a host in the order in which they are tried: IPv4 only, as published
// engines do, or with the option IPv6 those first. Literals of both families are taken as they are.
func (n *Node) resolve(ctx context.Context, c call, host string) ([]netip.Addr, error) {
	if host == "" {
		return nil, c.fault(xfer.DNS, "the name has no host", "name the segment as host:port", nil)
	}
	if literal, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{literal}, nil
	}
	network := "ip4"
	if n.options.IPv6 {
		network = "ip"
	}
	limited, cancel := context.WithTimeout(ctx, n.options.ConnectTimeout)
	defer cancel()
	addresses, err := n.resolver.LookupNetIP(limited, network, host)
	if err == nil && len(addresses) == 0 {
		err = errors.New("no address of the family")
	}
	if err != nil {
		return nil, c.failed(ctx, xfer.DNS, "host "+host, err)
	}
	for i := range addresses {
		addresses[i] = addresses[i].Unmap()
	}
	slices.SortStableFunc(addresses, func(a, b netip.Addr) int { return b.BitLen() - a.BitLen() })
	return addresses, nil
}
