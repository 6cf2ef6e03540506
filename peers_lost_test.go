package moonpath_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/transport/fault"
	"github.com/moonpath-io/moonpath/xfer"
)

// TestR_LIV_3_ALostControlMessageEndsBothSidesInTime loses questions and answers, in whole and in part, in both
// directions of the control port; what would tell the end of the connection is lost, too. Who asked ends by its deadline,
// and who was asked by itself.
func TestR_LIV_3_ALostControlMessageEndsBothSidesInTime(t *testing.T) {
	const limit, margin, askedLimit = 500 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second
	verbs := map[string]func(ctx context.Context, e *moonpath.Engine, name string) error{
		"OpenSegment": func(ctx context.Context, e *moonpath.Engine, name string) error {
			_, err := e.OpenSegmentContext(ctx, name)
			return err
		},
		"Probe": func(ctx context.Context, e *moonpath.Engine, name string) error { return e.Probe(ctx, name) },
		"SendNotify": func(_ context.Context, e *moonpath.Engine, name string) error { // bounded by the transfer timeout
			return e.SendNotifyByName(name, moonpath.Notify{Name: "n", Text: "a text of some length, so that a part of it is a part"})
		},
	}
	for lost, rule := range map[string]fault.StreamRule{
		"question":             {Do: fault.Drop, Direction: fault.ToTarget},
		"half of the question": {Do: fault.Drop, Direction: fault.ToTarget, At: 10},
		"answer":               {Do: fault.Drop, Direction: fault.ToClient},
		"half of the answer":   {Do: fault.Drop, Direction: fault.ToClient, At: 10},
	} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			asked := openEngine(t, nil)
			e := openEngine(t, withSettings(map[string]string{"transfer.timeout": limit.String()}))
			plan, err := fault.NewPlan(1, rule)
			if err != nil {
				t.Fatal(err)
			}
			proxy, err := fault.Listen(asked.Name(), plan)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { proxy.Close() })
			var all sync.WaitGroup
			for verb, ask := range verbs {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					start := time.Now()
					err := ask(ctx, e, proxy.Addr().String())
					var f *moonpath.Fault
					if !errors.As(err, &f) || f.Code != xfer.Interrupted && f.Code != xfer.Deadline {
						t.Errorf("%s: the end is %v", verb, err)
					}
					if took := time.Since(start); took > limit+margin {
						t.Errorf("%s: took %v, want at most %v", verb, took, limit)
					}
				})
			}
			all.Wait()
			eventually(t, askedLimit, "the asked side has given up", func() bool { return counter(t, asked, "control", "connections") == 0 })
			if err := e.Probe(t.Context(), asked.Name()); err != nil {
				t.Errorf("the asked side does not answer any more: %v", err)
			}
		})
	}
}

// TestR_LIV_3_ALostHelloEndsItsRequestsInTime loses the first message at the data port, or its answer.
func TestR_LIV_3_ALostHelloEndsItsRequestsInTime(t *testing.T) {
	const limit, margin = time.Second, time.Second
	for lost, direction := range map[string]fault.Direction{"hello": fault.ToTarget, "answer": fault.ToClient} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			p := startPeer(t, 1<<20)
			plan, err := fault.NewPlan(1, fault.StreamRule{Do: fault.Drop, Direction: direction})
			if err != nil {
				t.Fatal(err)
			}
			front, err := fault.OpenFront(t.Context(), p.Name, plan, fault.FrontOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { front.Close() })
			e := openEngine(t, nil)
			b, err := e.NewBatch(moonpath.BatchOptions{Capacity: 1, Deadline: limit})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			here := alloc(t, e, 4096)
			submit(t, b, moonpath.Request{Op: moonpath.OpWrite, Local: here.At(0), Len: 4096, Target: openName(t, e, front.Name()), Remote: p.Addr})
			start := time.Now()
			requireFault(t, b.Wait(t.Context()), xfer.Deadline)
			if took := time.Since(start); took > limit+margin {
				t.Errorf("took %v, want at most %v", took, limit)
			}
			if s, err := b.Status(0); err != nil || s.State != xfer.Timeout || s.Remote != xfer.Confirmed {
				t.Errorf("nothing was sent, and the request ended as %+v, %v", s, err)
			}
		})
	}
}
