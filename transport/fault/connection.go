package fault

//moonpath:goroutines

import (
	"cmp"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// connection is one client with its connection to the target.
type connection struct {
	proxy  *Proxy
	number int
	target string
	client *net.TCPConn
	gone   chan struct{} // closed by end
	swept  atomic.Bool   // what is read is discarded: both ends have been told that it is over

	mu    sync.Mutex
	far   *net.TCPConn // nil until connected
	ended bool
}

// dialTime bounds the connection to the target.
const dialTime = 10 * time.Second

func (c *connection) run() {
	defer c.proxy.forget(c)
	dialer := net.Dialer{Timeout: dialTime}
	far, err := dialer.DialContext(c.proxy.ctx, "tcp", c.target)
	if err != nil {
		c.end(true) // what the client would see of a target that is gone
		return
	}
	c.mu.Lock()
	c.far = far.(*net.TCPConn)
	ended := c.ended
	c.mu.Unlock()
	if ended {
		reset(c.far)
		return
	}
	var streams [2]*stream
	for d := range streams {
		streams[d] = c.stream(Direction(d))
	}
	var both sync.WaitGroup
	both.Go(streams[ToTarget].run)
	streams[ToClient].run()
	both.Wait()
	c.end(false)
}

// end closes both sockets, by a reset or in order.
func (c *connection) end(byReset bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	close(c.gone)
	for _, s := range []*net.TCPConn{c.client, c.far} {
		switch {
		case s == nil:
		case byReset:
			reset(s)
		default:
			s.Close()
		}
	}
}

// finish tells both ends that the other has no more to say, and discards what they still do. The connection ends when
// both have closed.
func (c *connection) finish() {
	c.mu.Lock()
	far := c.far
	c.mu.Unlock()
	if far == nil {
		c.end(false)
		return
	}
	c.swept.Store(true)
	_ = c.client.CloseWrite() // an end that is gone needs not be told
	_ = far.CloseWrite()
}

func reset(s *net.TCPConn) {
	_ = s.SetLinger(0) // then Close resets
	s.Close()
}

// stream makes one direction, with the rules that pick this connection, in the order of their places.
func (c *connection) stream(d Direction) *stream {
	s := &stream{connection: c, direction: d, from: c.client, to: c.far}
	if d == ToClient {
		s.from, s.to = c.far, c.client
	}
	p := c.proxy.plan
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, counted := range p.rules {
		if r, ok := counted.Rule.(StreamRule); ok && r.Direction == d && p.picks(i, onStream{c.number, d}) {
			s.rules = append(s.rules, misfortune{r, p.random(i, -1-c.number)})
		}
	}
	slices.SortStableFunc(s.rules, func(a, b misfortune) int { return cmp.Compare(a.At, b.At) })
	return s
}
