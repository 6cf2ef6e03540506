package transporttest

import (
	"bytes"
	"fmt"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// task is one request. The source's lock guards what changes.
type task struct {
	op     xfer.Op
	queue  transport.Queue
	local  *mem.Region
	off    uint64
	remote uint64
	far    []byte // the target's memory at remote; nil if there is none that the task may reach
	len    uint64

	fresh, stale content // what is to be moved, and what lies at its destination before
	quick        bool    // nothing is looked at: for cases that count, or for memory that is shared or lost

	source *source // that it was queued in

	next  *task
	cut   uint64 // handed out so far
	left  uint64 // not given back yet
	parts []part // given back
	fault *xfer.Fault
	known xfer.Certainty
	ended chan struct{} // one slot
}

// part is a chunk that was given back.
type part struct {
	off, len uint64
	failed   bool
	remote   xfer.Certainty
	as       []byte // the target's memory must stay like this, if it is known
}

// task makes a request that moves n bytes between fresh places in both arenas.
func (x *rig) task(op xfer.Op, n uint64) *task { return x.skewed(op, n, 0, 0) }

// skewed lets both places start behind an aligned address.
func (x *rig) skewed(op xfer.Op, n, near, far uint64) *task {
	return x.between(op, n, x.near, x.near.place(n, near), x.far, x.far.place(n, far))
}

// between makes a request between two places, and fills both.
func (x *rig) between(op xfer.Op, n uint64, near *arena, off uint64, far *arena, there uint64) *task {
	k := x.aimed(op, n, near, off, uint64(far.region.At(there)))
	k.far = far.bytes(span{there, n})
	if op == xfer.Read {
		k.fresh.fill(k.far, 0)
	} else {
		k.stale.fill(k.far, 0)
	}
	return k
}

// aimed makes a request for an address that may be anything, and fills the local end.
func (x *rig) aimed(op xfer.Op, n uint64, near *arena, off, remote uint64) *task {
	x.made += 2
	k := &task{op: op, local: near.region, off: off, remote: remote, len: n, left: n, queue: transport.Bulk, fresh: content(x.made), stale: content(x.made + 1),
		ended: make(chan struct{}, 1)}
	switch {
	case !x.published(remote, n):
		k.queue = transport.Suspect
	case n <= transport.SmallLimit:
		k.queue = transport.Small
	}
	if op == xfer.Read {
		k.stale.fill(k.memory(), 0)
	} else {
		k.fresh.fill(k.memory(), 0)
	}
	x.tasks = append(x.tasks, k)
	return k
}

// outside makes a request for an address that the target does not serve.
func (x *rig) outside(op xfer.Op, n, remote uint64) *task {
	return x.aimed(op, n, x.near, x.near.place(n, 0), remote)
}

func (k *task) memory() []byte { return k.local.Bytes()[k.off : k.off+k.len] }

func (k *task) String() string { return fmt.Sprintf("%s of %d bytes at %#x", k.op, k.len, k.remote) }

// givenBack looks at both ends of a chunk that was just given back, and poisons the local one. It returns what is wrong.
func (k *task) givenBack(off, n uint64, c *transport.Completion) string {
	local, p := k.memory()[off:off+n], part{off: off, len: n, failed: c.Fault != nil, remote: c.Remote}
	var wrong string
	switch {
	case c.Fault != nil && k.op == xfer.Write && c.Remote == xfer.Confirmed && k.far != nil:
		p.as = bytes.Clone(k.far[off : off+n])
	case c.Fault != nil:
	case c.Remote == xfer.Unknown:
		wrong = fmt.Sprintf("a chunk of the %s came back as done, with unknown remote state", k)
	case k.far == nil:
		wrong = fmt.Sprintf("a chunk of the %s came back as done; the target has nothing there that it could have reached", k)
	case k.op == xfer.Read:
		if i := k.fresh.differs(local, off); i >= 0 {
			wrong = fmt.Sprintf("Done said that a chunk of the %s is there, and its byte %d was not", k, off+uint64(i))
		}
	default:
		if i := k.fresh.differs(k.far[off:off+n], off); i >= 0 && c.Remote == xfer.Confirmed {
			wrong = fmt.Sprintf("Done said that a chunk of the %s is there, and its byte %d was not in the target's memory", k, off+uint64(i))
		}
	}
	k.parts = append(k.parts, p)
	paint(local, poison)
	return wrong
}

// settled keeps what failed writes have left at the target: the route has promised that nothing more will happen.
func (k *task) settled() {
	for i := range k.parts {
		p := &k.parts[i]
		if k.far != nil && p.failed && k.op == xfer.Write && p.as == nil {
			p.as = bytes.Clone(k.far[p.off : p.off+p.len])
		}
	}
}

// aftermath looks at both ends when everything has come to rest. It returns what is wrong.
func (k *task) aftermath() string {
	for _, p := range k.parts {
		if i := stained(k.memory()[p.off:p.off+p.len], poison); i >= 0 {
			return fmt.Sprintf("byte %d of the local memory of the %s was written after it had been given back", p.off+uint64(i), k)
		}
		if k.far == nil {
			continue
		}
		there := k.far[p.off : p.off+p.len]
		switch {
		case p.as != nil:
			if !bytes.Equal(there, p.as) {
				return fmt.Sprintf("the failed %s changed the target's memory after it was said that nothing more would happen", k)
			}
		case p.failed && k.op == xfer.Write:
			if i := k.neither(there, p.off); i >= 0 {
				return fmt.Sprintf("byte %d at the target of the failed %s is neither what was there nor what was sent", p.off+uint64(i), k)
			}
		default:
			if i := k.fresh.differs(there, p.off); i >= 0 {
				return fmt.Sprintf("byte %d at the target of the %s is wrong in the end; it was overwritten, or read from local memory after that had been given back",
					p.off+uint64(i), k)
			}
		}
	}
	return k.untaken()
}

// untaken looks at what was never handed out.
func (k *task) untaken() string {
	here, there := k.stale, k.fresh
	if k.op == xfer.Write {
		here, there = there, here
	}
	if here.differs(k.memory()[k.cut:], k.cut) >= 0 || k.far != nil && there.differs(k.far[k.cut:], k.cut) >= 0 {
		return fmt.Sprintf("the part of the %s that was never taken was touched", k)
	}
	return ""
}

// neither returns the first byte that holds neither of the two contents; -1 if none does.
func (k *task) neither(b []byte, off uint64) int {
	for i := range b {
		if b[i] != k.fresh.at(off + uint64(i))[0] && b[i] != k.stale.at(off + uint64(i))[0] {
			return i
		}
	}
	return -1
}
