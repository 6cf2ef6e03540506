package segment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moonpath-io/moonpath/xfer"
)

// Peer is an opened segment. Its description is replaced as a whole when it is fetched anew.
type Peer struct {
	ID   xfer.SegmentID
	Name string // under which it was opened

	desc  atomic.Pointer[Desc]
	cache *Cache

	mu      sync.Mutex // guards what follows
	fetch   *fetch     // under way, or nil
	last    *fetch     // that is over, or nil
	fetches uint64     // begun
	fetched time.Time

	answered time.Time // when a lookup last succeeded
	failure  error     // of the newest lookup that says something about the owner
}

// fetch is a lookup that several callers wait for.
type fetch struct {
	number uint64 // from 1
	done   chan struct{}
	err    error
	late   bool // it failed when the time of the caller who led it was up, and may say so in other words
}

// abandoned reports whether the caller who led the lookup gave it up: then it says nothing about the peer.
func (f *fetch) abandoned() bool {
	return f.late || errors.Is(f.err, xfer.Interrupted) || errors.Is(f.err, xfer.Deadline)
}

// Desc returns the newest description.
func (p *Peer) Desc() *Desc { return p.desc.Load() }

// Refresh fetches the description anew; callers at the same time share one lookup. It returns what the owner
// said after the call began: a lookup that was under way by then is waited for and not taken. On error the old
// description stays in use.
func (p *Peer) Refresh(ctx context.Context) (*Desc, error) {
	p.mu.Lock()
	before := p.fetches
	for {
		if f := p.last; f != nil && f.number > before && !f.abandoned() {
			p.mu.Unlock()
			return p.desc.Load(), f.err
		}
		f := p.fetch
		if f == nil {
			return p.lead(ctx)
		}
		p.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return p.desc.Load(), ended(ctx, p.Name)
		}
		p.mu.Lock()
	}
}

// lead makes the lookup that others wait for. p.mu is held, and is released.
func (p *Peer) lead(ctx context.Context) (*Desc, error) {
	p.fetches++
	f := &fetch{number: p.fetches, done: make(chan struct{})}
	p.fetch = f
	p.mu.Unlock()
	f.err = p.lookup(ctx)
	if limit, ok := ctx.Deadline(); f.err != nil && ok {
		f.late = !time.Now().Before(limit)
	}
	p.mu.Lock()
	p.fetch, p.last = nil, f
	p.fetched = time.Now()
	switch {
	case f.err == nil:
		p.answered, p.failure = p.fetched, nil
	case !f.abandoned():
		p.failure = f.err
	}
	p.mu.Unlock()
	close(f.done)
	return p.desc.Load(), f.err
}

// ended is the fault for a caller whose context ended while another one asked.
func ended(ctx context.Context, name string) *xfer.Fault {
	f := &xfer.Fault{Code: xfer.Interrupted, Stage: xfer.StageResolve, Peer: name, Cause: context.Cause(ctx)}
	if errors.Is(f.Cause, xfer.Deadline) {
		f.Code = xfer.Deadline // the engine's limit, not the caller's
	}
	return f
}

// Age returns how long ago the description was last asked for.
func (p *Peer) Age() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.fetched)
}

// Answered returns when the owner last answered with a description, and the error of the newest lookup that is over if
// that one was not answered. One that its caller gave up is no answer and no error.
func (p *Peer) Answered() (last time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered, p.failure
}

func (p *Peer) lookup(ctx context.Context) error {
	d, err := p.cache.directory.Lookup(ctx, p.Name)
	if err != nil {
		return notAvailable(p.Name, err)
	}
	if old := p.desc.Load(); old == nil || !old.equal(d) {
		d.Gen = p.cache.gen.Add(1)
		p.desc.Store(d)
	}
	return nil
}

// Cache holds the opened segments of one engine. Its methods may be called from any goroutine; Get takes
// no lock.
type Cache struct {
	directory Directory
	gen       atomic.Uint64
	handles   atomic.Pointer[[]*Peer] // by index; entries of closed segments are nil

	mu     sync.Mutex // one writer at a time
	byName map[string]*Peer
	gens   []uint32 // by index, grows when an index is used again
	free   []int
}

// NewCache returns a cache that looks peers up in directory.
func NewCache(directory Directory) *Cache {
	c := &Cache{directory: directory, byName: make(map[string]*Peer)}
	c.handles.Store(new([]*Peer))
	return c
}

// Open returns the peer of that name, fetching its description if it is not open yet. A failed fetch is
// not remembered.
func (c *Cache) Open(ctx context.Context, name string) (*Peer, error) {
	if name == "" {
		return nil, &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageArgument, Detail: "the segment name is empty", Next: "name the segment as host:port"}
	}
	c.mu.Lock()
	p := c.byName[name]
	c.mu.Unlock()
	if p != nil {
		return p, nil
	}
	p = &Peer{Name: name, cache: c}
	if _, err := p.Refresh(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.byName[name]; q != nil {
		return q, nil
	}
	c.add(p)
	return p, nil
}

// add gives p the next handle; c.mu is held.
func (c *Cache) add(p *Peer) {
	handles := append([]*Peer(nil), *c.handles.Load()...)
	var index int
	if n := len(c.free); n > 0 {
		index = c.free[n-1]
		c.free = c.free[:n-1]
	} else {
		index = len(handles)
		handles = append(handles, nil)
		c.gens = append(c.gens, 0)
	}
	p.ID = xfer.SegmentID(uint64(c.gens[index])<<32 | uint64(index+1))
	handles[index] = p
	c.byName[p.Name] = p
	c.handles.Store(&handles)
}

// Get returns the open peer with that id.
func (c *Cache) Get(id xfer.SegmentID) (*Peer, error) {
	index := int(uint32(id)) - 1
	if handles := *c.handles.Load(); index >= 0 && index < len(handles) {
		if p := handles[index]; p != nil && p.ID == id {
			return p, nil
		}
	}
	return nil, &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageArgument,
		Detail: fmt.Sprintf("segment id %d is not open in this engine", uint64(id)), Next: "open the segment by name and use the id that is returned"}
}

// Close forgets a peer; its id is stale from then on.
func (c *Cache) Close(id xfer.SegmentID) (*Peer, error) {
	p, err := c.Get(id)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	handles := append([]*Peer(nil), *c.handles.Load()...)
	index := int(uint32(id)) - 1
	if handles[index] != p {
		return nil, &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageArgument, Detail: fmt.Sprintf("segment id %d was closed by another caller", uint64(id))}
	}
	handles[index] = nil
	c.handles.Store(&handles)
	delete(c.byName, p.Name)
	c.gens[index]++
	c.free = append(c.free, index)
	return p, nil
}

// Peers returns the open peers in the order of their handles.
func (c *Cache) Peers() []*Peer {
	var open []*Peer
	for _, p := range *c.handles.Load() {
		if p != nil {
			open = append(open, p)
		}
	}
	return open
}

// ByName returns the open peer of that name, or nil.
func (c *Cache) ByName(name string) *Peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byName[name]
}
