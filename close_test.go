package moonpath_test

import (
	"context"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

func TestShutdownLetsTransfersEnd(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	const block, count = 1 << 20, 32
	there, here := alloc(t, target, block*count), alloc(t, e, block*count)
	b := newBatch(t, e, count)
	submit(t, b, rows(moonpath.OpWrite, pinned(t, e, "tcp"), here, open(t, e, target), there, count, block)...)
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s, err := e.GetBatchTransferStatus(b.ID()); err != nil || s.State != xfer.Completed || s.Bytes != block*count {
		t.Errorf("the batch ended as %+v, %v", s, err)
	}
}

func TestShutdownAndCloseCancelWhatDoesNotEnd(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *moonpath.Engine){
		"Shutdown": func(t *testing.T, e *moonpath.Engine) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			requireFault(t, e.Shutdown(ctx), xfer.Interrupted)
		},
		"Close": func(t *testing.T, e *moonpath.Engine) {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, e, _ := stalledTransfer(t)
			waiting := make(chan error, 1)
			go func() { waiting <- b.Wait(context.Background()) }()
			start := time.Now()
			end(t, e)
			if took := time.Since(start); took > 7*time.Second {
				t.Errorf("took %v", took)
			}
			requireFault(t, <-waiting, xfer.Interrupted)
			if s, err := b.Status(0); err != nil || s.State != xfer.Canceled {
				t.Errorf("the task ended as %+v, %v", s, err)
			}
		})
	}
}

// Close comes while others use the engine: they get errors that say so, and nothing else happens to them.
func TestCloseWhileOthersUseTheEngine(t *testing.T) {
	for range 20 {
		target, e := openEngine(t, nil), openEngine(t, nil)
		there := alloc(t, target, 64<<10)
		id, pin := open(t, e, target), pinned(t, e, "tcp")
		started := make(chan struct{}, 3)
		ended := make(chan struct{}, 3)
		use := func(f func() error) {
			defer func() { ended <- struct{}{} }()
			for i := 0; ; i++ {
				err := f()
				if i == 0 {
					started <- struct{}{}
				}
				if err != nil {
					if code := xfer.CodeOf(err); code != xfer.Closed && code != xfer.Interrupted {
						t.Errorf("%v", err)
					}
					return
				}
			}
		}
		slice := make([]byte, 64<<10)
		here := registerSlice(t, e, slice)
		go use(func() error {
			b, err := e.NewBatch(moonpath.BatchOptions{Capacity: 4})
			if err != nil {
				return err
			}
			defer b.Close()
			if _, err := b.Submit(t.Context(), rows(moonpath.OpRead, pin, here, id, there, 4, 16<<10)); err != nil {
				return err
			}
			return b.Wait(t.Context())
		})
		go use(func() error {
			m, err := e.Alloc(4096, moonpath.AllocOptions{})
			if err != nil {
				return err
			}
			return m.Free()
		})
		go use(func() error { return e.ProbePeerAlive(id) })
		for range 3 {
			<-started
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		for range 3 {
			<-ended
		}
	}
}
