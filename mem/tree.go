package mem

import "github.com/moonpath-io/moonpath/xfer"

// node is a persistent treap keyed by start address: every version is immutable, an insertion or removal
// copies one path. Priorities are a hash of the address, so the shape depends on the content alone.
type node struct {
	left, right *node
	region      *Region
	priority    uint64
	size        int
}

func newNode(r *Region) *node {
	return &node{region: r, priority: mix(uint64(r.Addr)), size: 1}
}

// mix spreads the bits of an address (finaliser of splitmix64), so that sorted insertion stays balanced.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

func (n *node) count() int {
	if n == nil {
		return 0
	}
	return n.size
}

func (n *node) with(left, right *node) *node {
	return &node{left: left, right: right, region: n.region, priority: n.priority, size: left.count() + right.count() + 1}
}

// split returns the nodes that start below a, and those at or above it.
func (n *node) split(a xfer.Addr) (below, above *node) {
	if n == nil {
		return nil, nil
	}
	if n.region.Addr < a {
		b, c := n.right.split(a)
		return n.with(n.left, b), c
	}
	b, c := n.left.split(a)
	return b, n.with(c, n.right)
}

// join concatenates two trees; everything in n starts below everything in m.
func (n *node) join(m *node) *node {
	switch {
	case n == nil:
		return m
	case m == nil:
		return n
	case n.priority > m.priority:
		return n.with(n.left, n.right.join(m))
	}
	return m.with(n.join(m.left), m.right)
}

func (n *node) insert(r *Region) *node {
	below, above := n.split(r.Addr)
	return below.join(newNode(r)).join(above)
}

func (n *node) remove(r *Region) *node {
	below, rest := n.split(r.Addr)
	_, above := rest.split(r.Addr + 1)
	return below.join(above)
}

// floor returns the region with the greatest start address that is at most a, or nil.
func (n *node) floor(a xfer.Addr) *Region {
	var best *Region
	for n != nil {
		if n.region.Addr <= a {
			best = n.region
			n = n.right
		} else {
			n = n.left
		}
	}
	return best
}

// overlap returns a region that shares a byte with [a, a+n), or nil. n is not 0 and a+n does not wrap.
func (n *node) overlap(a xfer.Addr, length uint64) *Region {
	r := n.floor(a + xfer.Addr(length) - 1)
	if r != nil && uint64(r.Addr)+(r.Len-1) >= uint64(a) {
		return r
	}
	return nil
}

func (n *node) walk(visit func(*Region) bool) bool {
	return n == nil || n.left.walk(visit) && visit(n.region) && n.right.walk(visit)
}
