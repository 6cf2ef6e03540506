package moonpath

//moonpath:goroutines

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/xfer"
)

func nanoseconds(bytes uint64) time.Duration {
	return time.Duration(min(bytes, uint64(time.Hour)))
}

// OpenSegment opens a peer's segment by name, which in the peer-to-peer form is its control endpoint. The
// engine's own name gives LocalSegment. A segment that is open already is not fetched again.
func (e *Engine) OpenSegment(name string) (SegmentID, error) {
	return e.OpenSegmentContext(context.Background(), name)
}

// OpenSegmentContext is OpenSegment bounded by ctx.
func (e *Engine) OpenSegmentContext(ctx context.Context, name string) (SegmentID, error) {
	if err := e.checkOpen(); err != nil {
		return 0, err
	}
	if name == e.Name() {
		return LocalSegment, nil
	}
	ctx, cancel := e.bounded(ctx, 0)
	defer cancel()
	known := e.peers.ByName(name) != nil
	p, err := e.peers.Open(ctx, name)
	if err != nil {
		return 0, err
	}
	if known && e.settings.Bool("segment.cache_off") {
		if _, err := p.Refresh(ctx); err != nil {
			return 0, err
		}
	}
	return p.ID, nil
}

// CloseSegment forgets a peer: its id is stale from now on, and its connections end once the transfers that
// use them have.
func (e *Engine) CloseSegment(id SegmentID) error {
	if err := e.checkOpen(); err != nil {
		return err
	}
	if id == LocalSegment {
		return nil
	}
	if _, err := e.peers.Close(id); err != nil {
		return err
	}
	e.multi.Forget(id)
	return nil
}

// Segment returns the description of an open segment, as it was fetched last. It must not be changed.
func (e *Engine) Segment(id SegmentID) (*segment.Desc, error) {
	if id == LocalSegment {
		return e.describeSelf(), nil
	}
	p, err := e.peers.Get(id)
	if err != nil {
		return nil, err
	}
	return p.Desc(), nil
}

// SyncSegmentCache fetches the description of one open segment anew, or of all if name is empty. What cannot
// be fetched keeps its old description; the error says which. A name that is not open is no error.
func (e *Engine) SyncSegmentCache(name string) error {
	if err := e.checkOpen(); err != nil {
		return err
	}
	ctx, cancel := e.bounded(context.Background(), 0)
	defer cancel()
	return e.sync(ctx, name)
}

func (e *Engine) sync(ctx context.Context, name string) error {
	var errs []error
	for _, p := range e.peers.Peers() {
		if name == "" || name == p.Name {
			_, err := p.Refresh(ctx)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// GetLocalIPAndPort returns what peers open: the segment's name. Unlike Mooncake's, an IPv6 host is in
// brackets.
func (e *Engine) GetLocalIPAndPort() string { return e.Name() }

// GetRPCPort returns the control port.
func (e *Engine) GetRPCPort() int { return e.node.Port() }

// name returns the name that control messages to a segment go to: what its owner calls itself.
func (e *Engine) controlName(id SegmentID) (string, error) {
	d, err := e.Segment(id)
	if err != nil {
		return "", err
	}
	if d.Name != "" {
		return d.Name, nil
	}
	p, err := e.peers.Get(id)
	if err != nil {
		return "", err
	}
	return p.Name, nil
}

// refresher fetches all descriptions anew at an interval, if the settings ask for it.
type refresher struct {
	quit    chan struct{}
	running sync.WaitGroup
	once    sync.Once
}

func (r *refresher) start(e *Engine) {
	r.quit = make(chan struct{})
	every := e.settings.Duration("segment.refresh_interval")
	if every <= 0 {
		return
	}
	r.running.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-r.quit:
				return
			case <-tick.C:
				ctx, cancel := context.WithTimeout(context.Background(), every)
				if err := e.sync(ctx, ""); err != nil && !errors.Is(err, xfer.Closed) {
					e.log.Debug("descriptions not refreshed", "error", err)
				}
				cancel()
			}
		}
	})
}

func (r *refresher) stop() {
	r.once.Do(func() {
		if r.quit != nil {
			close(r.quit)
		}
	})
	r.running.Wait()
}
