package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/moonpath-io/moonpath"
)

const greeting = "hello, other engine"

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	// The side that serves: memory outside the Go heap, registered and published.
	target, err := moonpath.Open(ctx, moonpath.Options{Host: "127.0.0.1"})
	if err != nil {
		return err
	}
	defer target.Close()
	served, err := target.Alloc(1<<20, moonpath.AllocOptions{})
	if err != nil {
		return err
	}

	// The side that moves: it knows the target's name, and the address that the target tells it.
	source, err := moonpath.Open(ctx, moonpath.Options{Host: "127.0.0.1"})
	if err != nil {
		return err
	}
	defer source.Close()
	own, err := source.Register(make([]byte, 64), moonpath.RegisterOptions{})
	if err != nil {
		return err
	}
	segment, err := source.OpenSegment(target.Name())
	if err != nil {
		return err
	}
	address := uint64(served.At(0))

	n := uint64(copy(own.Bytes(), greeting))
	if err := source.Write(ctx, segment, own.At(0), address, n); err != nil {
		return err
	}
	fmt.Fprintf(out, "written: %s\n", served.Bytes()[:n])

	clear(own.Bytes())
	if err := source.Read(ctx, segment, own.At(0), address, n); err != nil {
		return err
	}
	fmt.Fprintf(out, "read:    %s\n", own.Bytes()[:n])
	return nil
}
