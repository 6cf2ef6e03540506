package fake_test

import (
	"context"
	"fmt"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/fake"
	"github.com/moonpath-io/moonpath/xfer"
)

// A script can move bytes: this one plays a peer with 16 bytes of memory, refuses what lies outside, and keeps
// reads until the test steps.
func Example() {
	remote := make([]byte, 16)
	path := fake.New(fake.Options{Name: "path", Script: func(c *transport.Chunk) fake.Answer {
		if c.Remote+c.Len > uint64(len(remote)) {
			return fake.Fail(xfer.Refused, xfer.Confirmed)
		}
		if c.Op == xfer.Read {
			copy(c.Memory(), remote[c.Remote:])
			return fake.Hold
		}
		copy(remote[c.Remote:], c.Memory())
		return fake.Done
	}})

	// An engine does this part: it leases local memory, fills its queue and opens a route.
	regions, _ := new(mem.Table).Register([]mem.Spec{{Bytes: []byte("moonlight")}})
	local := mem.Lease{Region: regions[0]}
	work := new(queue)
	work.add(
		transport.Chunk{Op: xfer.Write, Local: local, Len: 9, Remote: 0},
		transport.Chunk{Op: xfer.Write, Local: local, Len: 9, Remote: 8},
		transport.Chunk{Op: xfer.Read, Local: local, Len: 5, Remote: 4},
	)
	route, _ := path.Dial(context.Background(), peer, work)
	route.Kick()

	fmt.Printf("%d taken, %d held, answered %v\n", len(path.Taken()), path.Held(), work.slots())
	path.Step(1)
	fmt.Printf("answered %v, local memory %q\n", work.slots(), regions[0].Bytes())
	fmt.Println(route.Quiesce(context.Background()))
	// Output:
	// 3 taken, 1 held, answered [0 -1004]
	// answered [0 -1004 2], local memory "lightight"
	// quiet
}
