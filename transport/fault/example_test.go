package fault_test

import (
	"context"
	"fmt"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/transport/fault"
	"github.com/moonpath-io/moonpath/xfer"
)

// The second write of this route is executed, and its answer gets lost.
func ExampleWrap() {
	plan, err := fault.NewPlan(1, fault.ChunkRule{Do: fault.Drop, Answer: true, Ops: fault.Only(xfer.Write), When: fault.When{Skip: 1, Times: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	path := fault.Wrap(fake.New(fake.Options{Name: "path"}), plan) // any transport.Transport

	// An engine does this part.
	regions, _ := new(mem.Table).Register([]mem.Spec{{Bytes: make([]byte, 64)}})
	work := &queue{}
	for i := range uint64(3) {
		work.chunks = append(work.chunks, transport.Chunk{Op: xfer.Write, Local: mem.Lease{Region: regions[0]}, Off: 16 * i, Remote: 0x1000 + 16*i, Len: 16})
	}
	route, _ := path.Dial(context.Background(), target{&segment.Desc{Name: "peer"}}, work)
	route.Kick()
	route.Quiesce(context.Background())

	events, _ := plan.Events()
	fmt.Println(events[0])
	// Output:
	// chunk 0: completed, confirmed
	// chunk 2: completed, confirmed
	// chunk 1: used after close, unknown
	// rule 0: drop: write of 16 bytes at 0x1010 of peer
}

// queue is the smallest transport.Source: it prints what comes back.
type queue struct {
	chunks []transport.Chunk
	next   uint32
}

func (q *queue) Waiting() transport.QueueSet { return 0 }

func (q *queue) Take(_ transport.Want, dst []transport.Chunk) int {
	n := copy(dst, q.chunks)
	q.chunks = q.chunks[n:]
	for i := range dst[:n] {
		dst[i].Ref.Slot = q.next
		q.next++
	}
	return n
}

func (q *queue) Done(cs []transport.Completion) {
	for _, c := range cs {
		what := "completed"
		if c.Fault != nil {
			what = c.Fault.Code.Error()
		}
		fmt.Printf("chunk %d: %s, %s\n", c.Ref.Slot, what, c.Remote)
	}
}
