package moonpath_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/wire/segjson"
)

// rawPeer is a peer made by hand, without the moonpath object: its control port gives a description away, its
// data port does what the test wants.
type rawPeer struct {
	name        string
	control     net.Listener
	data        net.Listener
	lookups     atomic.Int64 // descriptions given away
	connections atomic.Int64 // data connections accepted

	mu      sync.Mutex
	shape   func(*segjson.Descriptor) // changes the description before it is given away
	reply   []byte                    // instead of a description, if not nil
	open    []net.Conn
	running sync.WaitGroup
}

// rawMemory is an address that every rawPeer publishes, with rawLength bytes behind it.
const rawMemory, rawLength = 1 << 20, 1 << 40

// newRawPeer serves each data connection with serve, in a goroutine of its own. If serve is nil the connection
// is accepted and nobody ever reads from it: a stalled peer.
func newRawPeer(t testing.TB, serve func(net.Conn)) *rawPeer {
	t.Helper()
	p := &rawPeer{control: listen(t), data: listen(t)}
	p.name = p.control.Addr().String()
	p.running.Go(func() { p.accept(p.control, p.describe) })
	p.running.Go(func() {
		p.accept(p.data, func(c net.Conn) {
			p.connections.Add(1)
			if serve != nil {
				serve(c)
				c.Close()
			}
		})
	})
	t.Cleanup(p.close)
	return p
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (p *rawPeer) accept(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.open = append(p.open, c)
		p.mu.Unlock()
		p.running.Go(func() { serve(c) })
	}
}

func (p *rawPeer) describe(c net.Conn) {
	defer c.Close()
	f, err := ctrlframe.Read(c, ctrlframe.DefaultLimit)
	if err != nil {
		return
	}
	p.lookups.Add(1)
	d := &segjson.Descriptor{
		Name: p.name, Protocols: []string{"tcp"}, TCPProtoVersion: 2,
		TCPDataHost: "127.0.0.1", TCPDataPort: uint16(p.data.Addr().(*net.TCPAddr).Port),
		Buffers: []segjson.Buffer{{Name: p.name, Addr: rawMemory, Length: rawLength}},
	}
	p.mu.Lock()
	if p.shape != nil {
		p.shape(d)
	}
	body := p.reply
	if body == nil {
		body = segjson.Append(nil, d)
	}
	p.mu.Unlock()
	c.Write(ctrlframe.Append(nil, ctrlframe.Frame{Type: f.Type, Body: body}))
	io.Copy(io.Discard, c) // until the asker closes
}

// announce makes the peer describe itself otherwise from now on.
func (p *rawPeer) announce(shape func(*segjson.Descriptor)) *rawPeer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shape = shape
	return p
}

// close ends both ports and all connections.
func (p *rawPeer) close() {
	p.control.Close()
	p.data.Close()
	p.mu.Lock()
	for _, c := range p.open {
		c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}
