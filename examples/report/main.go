package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/moonpath-io/moonpath"
)

const block = 256 << 10

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	target, err := moonpath.Open(ctx, moonpath.Options{Host: "127.0.0.1"})
	if err != nil {
		return err
	}
	defer target.Close()
	served, err := target.Alloc(3*block, moonpath.AllocOptions{})
	if err != nil {
		return err
	}

	source, err := moonpath.Open(ctx, moonpath.Options{Host: "127.0.0.1"})
	if err != nil {
		return err
	}
	defer source.Close()
	own, err := source.Alloc(3*block, moonpath.AllocOptions{})
	if err != nil {
		return err
	}
	segment, err := source.OpenSegment(target.Name())
	if err != nil {
		return err
	}
	tcp, err := source.Pin("tcp")
	if err != nil {
		return err
	}
	rdma, err := source.Pin("rdma")
	if err != nil {
		return err
	}

	batch, err := source.NewBatch(moonpath.BatchOptions{Capacity: 3})
	if err != nil {
		return err
	}
	defer batch.Close()
	var requests []moonpath.Request
	for i, pin := range []moonpath.Pin{moonpath.NoPin, tcp, rdma} {
		off := uint64(i) * block
		requests = append(requests, moonpath.Request{
			Op: moonpath.OpWrite, Pin: pin, Local: own.At(off), Len: block, Target: segment, Remote: uint64(served.At(off)),
		})
	}
	if _, err := batch.Submit(ctx, requests); err != nil {
		return err
	}
	if err := batch.Wait(ctx); err != nil {
		fault := new(moonpath.Fault)
		if !errors.As(err, &fault) {
			return err
		}
		fmt.Fprintf(out, "not all completed: %s (code %d)\n", fault.Code, int(fault.Code))
	}
	printReport(out, batch.Report())
	return nil
}

func printReport(out io.Writer, report *moonpath.Report) {
	for _, r := range report.Requests {
		path := r.Path
		if path == "" {
			path = "no path"
		}
		fmt.Fprintf(out, "request %d: %s of %d bytes %s over %s", r.Index, r.Op, r.Bytes, r.State, path)
		if r.Reason != "" {
			fmt.Fprintf(out, " (%s)", r.Reason)
		}
		fmt.Fprintln(out)
		for _, no := range r.Rejected {
			for _, why := range no.Reasons {
				fmt.Fprintf(out, "  not %s: %s\n", no.Path, why)
			}
		}
	}
}
