package multi_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/multi"
	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// eager takes a chunk before Dial has returned, as a transport with lanes may, and gives back what is canceled.
type eager struct {
	transport.Transport
	taken  chan struct{}
	finish chan struct{} // Dial returns then
}

func (e *eager) Name() string { return "eager" }

func (e *eager) Offers(_ *segment.Desc, dst []transport.Offer) []transport.Offer {
	return append(dst, transport.Offer{Local: []xfer.MemKind{xfer.HostMem}, Ops: transport.BothOps})
}

func (e *eager) Attach(context.Context, []*mem.Region) error { return nil }

func (e *eager) Dial(_ context.Context, _ transport.Peer, work transport.Source) (transport.Route, error) {
	var chunks [1]transport.Chunk
	work.Take(transport.Want{Bytes: 1 << 20, Piece: 1 << 20, Queues: transport.Set(transport.Small, transport.Bulk)}, chunks[:])
	close(e.taken)
	<-e.finish
	return &eagerRoute{work}, nil
}

type eagerRoute struct{ work transport.Source }

func (r *eagerRoute) Kick() {}

func (r *eagerRoute) Cancel(refs []transport.Ref) {
	for _, ref := range refs {
		r.work.Done([]transport.Completion{{Ref: ref, Fault: &xfer.Fault{Code: xfer.Interrupted}}})
	}
}

func (r *eagerRoute) Quiesce(context.Context) transport.Quietness { return transport.Quiet }

func TestCancellationReachesWhatWasTakenBeforeDialReturned(t *testing.T) {
	var regions mem.Table
	memory := make([]byte, 4096)
	rs, err := regions.Register([]mem.Spec{{Bytes: memory, Remote: true}})
	if err != nil {
		t.Fatal(err)
	}
	at := rs[0].Addr
	self := &segment.Desc{Protocols: []string{"eager"}, Buffers: []segment.Buffer{{Addr: uint64(at), Len: 4096}}}
	m := multi.New(multi.Config{
		Regions: &regions, Self: func() *segment.Desc { return self }, MaxQueued: 16,
		Absent: func(string) transport.Availability { return transport.Availability{State: transport.Absent} },
		Log:    slog.New(slog.DiscardHandler), Obs: obs.NewGroup(), Events: obs.NewRecorder(16),
	})
	defer m.Close(t.Context())
	e := &eager{taken: make(chan struct{}), finish: make(chan struct{})}
	if err := m.Install(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	b, err := m.NewBatch(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Submit(t.Context(), []xfer.Request{{Op: xfer.Write, Local: at, Len: 64, Remote: uint64(at) + 64}}); err != nil {
		t.Fatal(err)
	}
	<-e.taken
	b.Cancel()
	close(e.finish)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	b.Wait(ctx)
	if s, err := b.Status(0); err != nil || s.State != xfer.Canceled {
		t.Errorf("the task is %v, %v, want canceled", s.State, err)
	}
}
