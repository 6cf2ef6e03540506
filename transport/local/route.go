package local

//moonpath:goroutines

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// route copies to and from one engine.
type route struct {
	source transport.Source
	target *Transport
	name   string
	own    bool // the target is the engine itself

	wake chan struct{}
	quit chan struct{}
	once sync.Once
	done sync.WaitGroup

	kicks sync.RWMutex // held shared by each Kick, so that Quiesce waits for it
	over  atomic.Bool  // nothing more is taken; set under kicks
}

const (
	// inlineBytes bounds what one Kick copies in the submitter's goroutine.
	inlineBytes = 256 << 10
	// pieceBytes is the largest single copy, so that a cancellation does not wait long.
	pieceBytes = 4 << 20
	burst      = 16
)

var every = transport.Set(transport.Small, transport.Bulk, transport.Suspect)

func newRoute(source transport.Source, target *Transport, name string, own bool) *route {
	r := &route{source: source, target: target, name: name, own: own, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	r.done.Go(r.run)
	return r
}

// Kick implements transport.Route.
func (r *route) Kick() {
	r.kicks.RLock()
	defer r.kicks.RUnlock()
	if r.over.Load() {
		return
	}
	restore := mem.ExpectFaults()
	for left := uint64(inlineBytes); left > 0; {
		n := r.copySome(transport.Want{Bytes: left, Piece: inlineBytes, Queues: transport.Set(transport.Small, transport.Suspect)})
		if n == 0 {
			break
		}
		left -= min(left, n)
	}
	restore()
	if r.source.Waiting() != 0 {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// run copies what Kick left.
func (r *route) run() {
	defer mem.ExpectFaults()()
	for {
		select {
		case <-r.wake:
		case <-r.quit:
			return
		}
		for !r.over.Load() && r.copySome(transport.Want{Bytes: pieceBytes, Piece: pieceBytes, Queues: every}) > 0 {
		}
	}
}

// copySome takes chunks, copies them and gives them back; it returns the bytes that it dealt with.
func (r *route) copySome(w transport.Want) (bytes uint64) {
	b := bursts.Get().(*batch)
	defer bursts.Put(b)
	n := r.source.Take(w, b.chunks[:])
	for i := range b.chunks[:n] {
		c := &b.chunks[i]
		b.done[i] = transport.Completion{Ref: c.Ref, Fault: r.copy(c)}
		bytes += c.Len
	}
	if n > 0 {
		r.source.Done(b.done[:n])
	}
	return bytes
}

// batch is what one call of copySome works on; submitters share routes, so it cannot be the route's.
type batch struct {
	chunks [burst]transport.Chunk
	done   [burst]transport.Completion
}

var bursts = sync.Pool{New: func() any { return new(batch) }}

func (r *route) copy(c *transport.Chunk) *xfer.Fault {
	lease, err := r.target.env.Regions.Acquire(xfer.Addr(c.Remote), c.Len)
	if err == nil && r.target.closed.Load() {
		lease.Release(1)
		return r.fault(xfer.Endpoint, c, "the engine has left this process", nil)
	}
	if err != nil {
		return r.fault(xfer.Refused, c, "no registration of the target holds the range", nil)
	}
	defer lease.Release(1)
	if !lease.Region.Remote && !r.own {
		return r.fault(xfer.Refused, c, "the memory is not remotely accessible", nil)
	}
	remote, local := lease.View(c.Remote-uint64(lease.Region.Addr), c.Len), c.Memory()
	if c.Op == xfer.Read {
		_, err = mem.Copy(local, remote)
	} else {
		_, err = mem.Copy(remote, local)
	}
	if err != nil {
		return r.fault(xfer.Memory, c, "", err)
	}
	return nil
}

func (r *route) fault(code xfer.Code, c *transport.Chunk, detail string, cause error) *xfer.Fault {
	if detail != "" {
		detail += ": "
	}
	return &xfer.Fault{Code: code, Stage: xfer.StageComplete, Path: Name, Peer: r.name, Cause: cause,
		Detail: detail + fmt.Sprintf("%s of %d bytes at %#x", c.Op, c.Len, c.Remote)}
}

// Cancel implements transport.Route. A copy under way is finished: it is short.
func (r *route) Cancel([]transport.Ref) {}

// Quiesce implements transport.Route.
func (r *route) Quiesce(context.Context) transport.Quietness {
	r.kicks.Lock()
	r.over.Store(true)
	r.kicks.Unlock()
	r.once.Do(func() { close(r.quit) })
	r.done.Wait()
	return transport.Quiet
}
