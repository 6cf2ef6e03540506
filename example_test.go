package moonpath_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/moonpath-io/moonpath"
)

// onLoopback is how the examples open engines. A real one names the host under which its peers reach it.
var onLoopback = moonpath.Options{Host: "127.0.0.1", Environ: []string{}}

// Two engines in one process stand for two machines: one serves memory, the other writes it and reads it back.
func Example() {
	ctx := context.Background()
	target, err := moonpath.Open(ctx, onLoopback)
	if err != nil {
		log.Fatal(err)
	}
	defer target.Close()
	served, err := target.Alloc(1<<20, moonpath.AllocOptions{})
	if err != nil {
		log.Fatal(err)
	}

	source, err := moonpath.Open(ctx, onLoopback)
	if err != nil {
		log.Fatal(err)
	}
	defer source.Close()
	own, err := source.Alloc(4096, moonpath.AllocOptions{})
	if err != nil {
		log.Fatal(err)
	}
	segment, err := source.OpenSegment(target.Name())
	if err != nil {
		log.Fatal(err)
	}

	copy(own.Bytes(), "hello")
	if err := source.Write(ctx, segment, own.At(0), uint64(served.At(0)), 5); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("the target has %q\n", served.Bytes()[:5])

	if err := source.Read(ctx, segment, own.At(1000), uint64(served.At(0)), 5); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("the source read %q\n", own.Bytes()[1000:1005])
	// Output:
	// the target has "hello"
	// the source read "hello"
}

// A batch moves many requests at once and says which path each one took.
func ExampleBatch() {
	ctx := context.Background()
	target, source, err := openPair(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer target.Close()
	defer source.Close()
	served, err := target.Alloc(1<<20, moonpath.AllocOptions{})
	if err != nil {
		log.Fatal(err)
	}
	own, err := source.Alloc(1<<20, moonpath.AllocOptions{})
	if err != nil {
		log.Fatal(err)
	}
	segment, err := source.OpenSegment(target.Name())
	if err != nil {
		log.Fatal(err)
	}
	tcp, err := source.Pin("tcp")
	if err != nil {
		log.Fatal(err)
	}

	batch, err := source.NewBatch(moonpath.BatchOptions{Capacity: 16})
	if err != nil {
		log.Fatal(err)
	}
	defer batch.Close()
	var requests []moonpath.Request
	for i := range uint64(16) {
		r := moonpath.Request{Op: moonpath.OpWrite, Local: own.At(i << 16), Len: 1 << 16, Target: segment, Remote: uint64(served.At(i << 16))}
		if i >= 12 {
			r.Pin = tcp // within one process memory is copied, unless a request insists
		}
		requests = append(requests, r)
	}
	if _, err := batch.Submit(ctx, requests); err != nil {
		log.Fatal(err)
	}
	if err := batch.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	for _, p := range batch.Report().Paths {
		fmt.Printf("%s: %d requests, %d bytes, %d failed\n", p.Path, p.Requests, p.Bytes, p.Failed)
	}
	// Output:
	// local: 12 requests, 786432 bytes, 0 failed
	// tcp: 4 requests, 262144 bytes, 0 failed
}

// Explain answers before anything is sent.
func ExampleEngine_Explain() {
	ctx := context.Background()
	target, source, err := openPair(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer target.Close()
	defer source.Close()
	segment, err := source.OpenSegment(target.Name())
	if err != nil {
		log.Fatal(err)
	}
	rdma, err := source.Pin("rdma")
	if err != nil {
		log.Fatal(err)
	}
	for _, pin := range []moonpath.Pin{moonpath.NoPin, rdma} {
		decision, err := source.Explain(segment, moonpath.OpWrite, 64<<10, pin)
		if err != nil {
			log.Fatal(err)
		}
		if decision.Chosen < 0 {
			fmt.Println("no path")
		} else {
			fmt.Println("chosen:", decision.Rows[decision.Chosen].Path)
		}
		for _, row := range decision.Rows {
			for _, why := range row.Rejected {
				fmt.Printf("  not %s: %s\n", row.Path, why)
			}
		}
	}
	// Output:
	// chosen: local
	//   not rdma: installed: want rdma, have this version of moonpath has no rdma transport yet
	//   not rdma: protocol: want rdma, have peer offers tcp
	// no path
	//   not local: pin: want rdma, have local
	//   not tcp: pin: want rdma, have tcp
	//   not rdma: installed: want rdma, have this version of moonpath has no rdma transport yet
	//   not rdma: protocol: want rdma, have peer offers tcp
}

// Mooncake's verbs, for programs that come from there.
func ExampleEngine_SubmitTransferWithNotify() {
	ctx := context.Background()
	target, source, err := openPair(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer target.Close()
	defer source.Close()
	served, err := target.Alloc(4096, moonpath.AllocOptions{})
	if err != nil {
		log.Fatal(err)
	}
	own, err := source.Alloc(4096, moonpath.AllocOptions{})
	if err != nil {
		log.Fatal(err)
	}
	segment, err := source.OpenSegment(target.Name())
	if err != nil {
		log.Fatal(err)
	}

	batch, err := source.AllocateBatchID(1)
	if err != nil {
		log.Fatal(err)
	}
	request := moonpath.Request{Op: moonpath.OpWrite, Local: own.At(0), Len: 4096, Target: segment, Remote: uint64(served.At(0))}
	if err := source.SubmitTransferWithNotify(batch, []moonpath.Request{request}, moonpath.Notify{Name: "source", Text: "it is there"}); err != nil {
		log.Fatal(err)
	}
	status, err := source.GetTransferStatus(batch, 0)
	for err == nil && !status.State.Terminal() {
		status, err = source.GetTransferStatus(batch, 0)
	}
	if err != nil {
		log.Fatal(err)
	}
	if err := source.FreeBatchID(batch); err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.State, status.Bytes)
	for _, n := range target.GetNotifies() {
		fmt.Println(n.Name+":", n.Text)
	}
	// Output:
	// completed 4096
	// source: it is there
}

// Every error is a Fault with a code, and says what to do next.
func ExampleFault() {
	ctx := context.Background()
	engine, err := moonpath.Open(ctx, onLoopback)
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()

	err = engine.UnregisterLocalMemory(0x1000)
	var fault *moonpath.Fault
	if errors.As(err, &fault) {
		fmt.Println(int(fault.Code), fault.Code.Name())
		fmt.Println(fault.Detail)
		fmt.Println(fault.NextStep())
	}
	// Output:
	// 3 AddressNotRegistered
	// no registration starts at 0x1000
	// register the memory first; moonpath segment NAME lists what a peer has registered
}

func openPair(ctx context.Context) (target, source *moonpath.Engine, err error) {
	if target, err = moonpath.Open(ctx, onLoopback); err != nil {
		return nil, nil, err
	}
	if source, err = moonpath.Open(ctx, onLoopback); err != nil {
		return nil, nil, errors.Join(err, target.Close())
	}
	return target, source, nil
}
