package fault

import (
	"context"
	"testing"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
)

type peer struct{}

func (peer) Desc() *segment.Desc                            { return &segment.Desc{Name: "peer"} }
func (peer) Refresh(context.Context) (*segment.Desc, error) { return nil, nil }

type nothing struct{}

func (nothing) Take(transport.Want, []transport.Chunk) int { return 0 }
func (nothing) Done([]transport.Completion)                {}
func (nothing) Waiting() transport.QueueSet                { return 0 }

// A plan that outlives its routes and proxies does not keep them.
func TestPlanForgetsWhoHasEnded(t *testing.T) {
	plan, err := NewPlan(1)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := Listen("127.0.0.1:1", plan)
	if err != nil {
		t.Fatal(err)
	}
	route, err := Wrap(fake.New(fake.Options{Name: "path"}), plan).Dial(t.Context(), peer{}, nothing{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(plan.members); n != 2 {
		t.Errorf("%d members while a route and a proxy are open", n)
	}
	route.Quiesce(t.Context())
	route.Quiesce(t.Context()) // once more
	proxy.Close()
	if n := len(plan.members); n != 0 {
		t.Errorf("%d members after all have ended", n)
	}
}
