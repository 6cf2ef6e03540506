package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/xfer"
)

// demoSteps are tried in this order; the first that fails ends the demo.
var demoSteps = []struct {
	name string
	do   func(*demo) (string, error)
}{
	{"start", (*demo).open},
	{"probe", (*demo).probe},
	{"1 B, written and read", roundTrip(1)},
	{"4095 B, written and read", roundTrip(4095)},
	{"64KiB, written and read", roundTrip(64 << 10)},
	{"1048577 B, written and read", roundTrip(1<<20 + 1)},
	{"16MiB, written and read", roundTrip(16 << 20)},
	{"64MiB, written and read", roundTrip(64 << 20)},
	{"one batch to peer and own memory", (*demo).mixed},
	{"a wrong address in a batch", (*demo).wrongAddress},
	{"notification", (*demo).notify},
}

// open starts the target process and the own engine.
func (d *demo) open() (string, error) {
	child, err := startChild(d.app.ctx, config.FormatSize(demoBuffer))
	if err != nil {
		return "", err
	}
	d.child = child
	d.engine, err = d.app.open(moonpath.Options{Host: defaultHost, Bind: defaultHost}, quietLevel)
	if err != nil {
		return "", err
	}
	if d.peer, err = d.app.openPeer(d.engine, child.ready.Segment); err != nil {
		return "", err
	}
	if d.memory, err = d.engine.Alloc(demoBuffer, moonpath.AllocOptions{Populate: true}); err != nil {
		return "", err
	}
	d.remote = child.ready.Buffers[0].Addr
	d.result.Engine, d.result.Target = d.engine.Name(), child.ready.Segment
	return fmt.Sprintf("process %d serves %s as %s", child.ready.PID, config.FormatSize(demoBuffer), child.ready.Segment), nil
}

func (d *demo) probe() (string, error) {
	start := time.Now()
	if err := d.engine.Probe(d.app.ctx, d.peer.name); err != nil {
		return "", err
	}
	return fmt.Sprintf("alive, answered in %v", brief(time.Since(start))), nil
}

// roundTrip writes n bytes from one half of the own memory, reads them back into the other and compares.
func roundTrip(n uint64) func(*demo) (string, error) {
	return func(d *demo) (string, error) {
		const half = demoBuffer / 2
		shift := min(7, half-n) // odd places, where there is room for them
		source, back := d.memory.Bytes()[shift:][:n], d.memory.Bytes()[half:][:n]
		fillPattern(source, n, 0)
		fillPattern(back, poisonSeed, 0)
		request := moonpath.Request{
			Op: moonpath.OpWrite, Local: d.memory.At(shift), Len: n, Target: d.peer.id, Remote: d.remote + 3*shift,
		}
		wrote, err := d.batch("write of "+sizeText(n), request)
		if err != nil {
			return "", err
		}
		request.Op, request.Local = moonpath.OpRead, d.memory.At(half)
		read, err := d.batch("read of "+sizeText(n), request)
		if err != nil {
			return "", err
		}
		if err := compare(d.peer, back, n, request.Remote, 0); err != nil {
			return "", err
		}
		return fmt.Sprintf("same bytes; write %v, read %v", brief(wrote), brief(read)), nil
	}
}

// batch transfers and keeps the report.
func (d *demo) batch(name string, requests ...moonpath.Request) (took time.Duration, err error) {
	b, err := d.engine.NewBatch(moonpath.BatchOptions{Capacity: len(requests)})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	start := time.Now()
	if _, err := b.Submit(d.app.ctx, requests); err != nil {
		return 0, err
	}
	err = b.Wait(d.app.ctx)
	took = time.Since(start)
	d.result.Batches = append(d.result.Batches, demoBatch{name, b.Report()})
	return took, err
}

const (
	mixedCount = 16      // requests to the peer, and as many to the own memory
	mixedStep  = 1 << 20 // between the places that they use
)

func mixedLen(i uint64) uint64 { return 1 + i*i*1237 } // 1 B to 278 KiB, mostly odd

// mixed sends one batch whose requests go to the peer and to the own memory in turn.
func (d *demo) mixed() (string, error) {
	const ownAt = mixedCount * mixedStep // offset in the own memory that the own half of the batch goes to
	var requests, back []moonpath.Request
	fillPattern(d.memory.Bytes()[:ownAt], mixedCount, 0)
	fillPattern(d.memory.Bytes()[ownAt:][:2*ownAt], poisonSeed, 0)
	for i := range uint64(mixedCount) {
		at := i*mixedStep + i
		r := moonpath.Request{Op: moonpath.OpWrite, Local: d.memory.At(at), Len: mixedLen(i), Target: d.peer.id, Remote: d.remote + at}
		requests = append(requests, r)
		back = append(back, moonpath.Request{Op: moonpath.OpRead, Local: d.memory.At(2*ownAt + at), Len: r.Len, Target: r.Target, Remote: r.Remote})
		r.Target, r.Remote = xfer.LocalSegment, uint64(d.memory.At(ownAt+at))
		requests = append(requests, r)
	}
	took, err := d.batch("one batch to peer and own memory", requests...)
	if err != nil {
		return "", err
	}
	if _, err := d.batch("its part at the peer, read back", back...); err != nil {
		return "", err
	}
	for i := range uint64(mixedCount) {
		at := i*mixedStep + i
		for _, from := range []uint64{ownAt, 2 * ownAt} {
			if err := compare(d.peer, d.memory.Bytes()[from+at:][:mixedLen(i)], mixedCount, d.remote, at); err != nil {
				return "", err
			}
		}
	}
	return fmt.Sprintf("%d requests, same bytes, %v", len(requests), brief(took)), nil
}

// wrongAddress sends a batch in which one request reaches past the end of the target's buffer.
func (d *demo) wrongAddress() (string, error) {
	const wrong, length = 2, 100
	requests := make([]moonpath.Request, 5)
	for i := range requests {
		requests[i] = moonpath.Request{
			Op: moonpath.OpWrite, Local: d.memory.At(0), Len: length, Target: d.peer.id, Remote: d.remote + uint64(i)*length,
		}
	}
	requests[wrong].Remote = d.remote + demoBuffer - length/2
	if _, err := d.batch("a batch with a wrong address", requests...); err == nil {
		return "", d.notRefused("a write across the end of the buffer was not refused")
	}
	report := d.result.Batches[len(d.result.Batches)-1].Report
	refused := ""
	for _, r := range report.Requests {
		switch {
		case r.Index == wrong && r.State == xfer.Failed.String():
			refused = r.Error
		case r.Index == wrong || r.State != xfer.Completed.String():
			return "", d.notRefused(fmt.Sprintf("request %d is %s: %s", r.Index, r.State, r.Error))
		}
	}
	return fmt.Sprintf("%d completed, request %d was refused as it should: %s", len(requests)-1, wrong, refused), nil
}

func (d *demo) notRefused(detail string) error {
	return &toolError{
		exit: exitFailed, name: "NotRefused", stage: "verify", peer: d.peer.name, detail: detail,
		next: "report it with the output of moonpath version",
	}
}

const notifyBound = 3 * time.Second

// notify sends a notification and waits until the target has logged it.
func (d *demo) notify() (string, error) {
	const text = "64MiB are written"
	if err := d.engine.SendNotify(d.peer.id, moonpath.Notify{Name: "demo", Text: text}); err != nil {
		return "", err
	}
	bounded, cancel := context.WithTimeout(d.app.ctx, notifyBound)
	defer cancel()
	if !d.child.logged(bounded, text) {
		return "", childError(fmt.Errorf("it did not show the notification within %v", notifyBound), d.child.output())
	}
	return fmt.Sprintf("%q arrived", text), nil
}
