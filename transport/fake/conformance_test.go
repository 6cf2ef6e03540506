package fake_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/transport/transporttest"
	"github.com/moonpath-io/moonpath/xfer"
)

// The fake moves nothing by itself; with a script that does it is a transport like any other.
func TestConformance(t *testing.T) {
	transporttest.Run(t, func(*testing.T) transporttest.Pair {
		m := &mover{target: new(mem.Table)}
		m.path = fake.New(fake.Options{Name: "path", Script: m.script, Dial: m.dial, Piece: 1 << 20, Window: 100, Unrecorded: true})
		there := fake.New(fake.Options{Name: "path"})
		draft := segment.Desc{Name: "there", Ext: &segment.Extension{Incarnation: rand.Uint64() | 1}}
		return transporttest.Pair{
			Initiator: transporttest.End{Transport: m.path, Regions: new(mem.Table), Draft: segment.Desc{Name: "here"}},
			Target:    transporttest.End{Transport: &leaver{there, &m.gone}, Regions: m.target, Draft: draft},
			Kill:      m.kill, Freeze: func() { m.frozen.Store(true) }, Thaw: m.thaw,
		}
	}, transporttest.Options{
		Goroutines: 1, Files: 1,
		Without: map[transporttest.Capability]string{
			transporttest.StallLimit: "time does not pass for the fake; what it holds it holds until it is told otherwise",
			transporttest.Restarting: "a script sees chunks, and not which life of the target they are for",
		},
	})
}

// leaver notes that the target has closed.
type leaver struct {
	*fake.Transport
	gone *atomic.Bool
}

func (l *leaver) Close(ctx context.Context) error {
	l.gone.Store(true)
	return l.Transport.Close(ctx)
}

// mover copies between the ends of a pair.
type mover struct {
	path         *fake.Transport
	target       *mem.Table
	gone, frozen atomic.Bool
}

func (m *mover) dial(context.Context, transport.Peer) error {
	if m.gone.Load() {
		return m.fault(xfer.Endpoint, xfer.StageDial, "the target has left")
	}
	return nil
}

func (m *mover) script(c *transport.Chunk) fake.Answer {
	switch {
	case m.gone.Load():
		return fake.Answer{Fault: m.fault(xfer.Endpoint, xfer.StageSend, "the target has left")}
	case m.frozen.Load():
		return fake.Hold
	}
	return fake.Answer{Fault: m.move(c)}
}

// move copies a chunk; nil means that it is done.
func (m *mover) move(c *transport.Chunk) *xfer.Fault {
	lease, err := m.target.Acquire(xfer.Addr(c.Remote), c.Len)
	if err != nil {
		return m.fault(xfer.Refused, xfer.StageComplete, "no registration of the target holds the range")
	}
	defer lease.Release(1)
	if !lease.Region.Remote {
		return m.fault(xfer.Refused, xfer.StageComplete, "the memory is private")
	}
	defer mem.ExpectFaults()()
	to, from := lease.View(c.Remote-uint64(lease.Region.Addr), c.Len), c.Memory()
	if c.Op == xfer.Read {
		to, from = from, to
	}
	if _, err := mem.Copy(to, from); err != nil {
		return m.fault(xfer.Memory, xfer.StageComplete, "the memory is not mapped")
	}
	return nil
}

func (m *mover) fault(code xfer.Code, stage xfer.Stage, detail string) *xfer.Fault {
	return &xfer.Fault{Code: code, Stage: stage, Path: "path", Peer: "there", Detail: detail}
}

// thaw does what piled up; held chunks have not moved yet.
func (m *mover) thaw() {
	m.frozen.Store(false)
	m.path.Answer(func(c *transport.Chunk) bool { return m.move(c) == nil }, fake.Done)
}

func (m *mover) kill() {
	m.gone.Store(true)
	m.path.Answer(func(*transport.Chunk) bool { return true }, fake.Answer{Fault: m.fault(xfer.Endpoint, xfer.StageComplete, "the target has left")})
}
