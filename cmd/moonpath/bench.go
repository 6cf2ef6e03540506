package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/xfer"
)

type benchCmd struct {
	Peer         peerFlags   `embed:""`
	Op           []opFlag    `name:"op" default:"write" help:"read, write, or both with a comma. Default: ${default}."`
	Block        []sizeFlag  `name:"block" default:"64KiB" help:"Length of a request. Default: ${default}."`
	Batch        []countFlag `name:"batch" default:"16" help:"Requests submitted at once. Default: ${default}."`
	Threads      []countFlag `name:"threads" default:"1" help:"Submitters at the same time, each with its own batch. Default: ${default}."`
	Duration     spanFlag    `name:"duration" default:"2s" help:"Time to measure, for each combination."`
	WarmUp       restFlag    `name:"warm-up" default:"100ms" help:"Time to run before measuring, for each combination; 0 measures from the first request on."`
	Transport    string      `name:"transport" placeholder:"NAME" help:"Insist on this transport, whatever shorter path there is."`
	TargetBuffer int         `name:"target-buffer" default:"0" help:"Which of the peer's buffers to use, counted from 0."`
	Addr         *addrFlag   `name:"addr" placeholder:"ADDR" help:"Use the peer's memory from this address to the end of its buffer."`
	Verify       bool        `name:"verify" help:"Write a pattern, read it back and compare, apart from what is measured."`
	Cold         bool        `name:"cold" help:"Walk the whole buffer on both sides instead of reusing one window, so that no cache helps."`
	BesideBulk   bool        `name:"beside-bulk" help:"Meanwhile, the same engine moves 16 MiB requests in batches of 4 in the same direction; the result describes the others, except CPU time, which is per byte of both."`
}

// Help is the part of the help that examples need.
func (*benchCmd) Help() string {
	return `A thread submits a batch, waits until all of it is complete, and does so again, for the given time after a
warm-up. It reuses one window of block × batch bytes on either side unless --cold is given. The content
of the peer's buffer is overwritten by writes, and by --verify.

Latency is that of a batch; with --batch 1 it is that of a request. CPU time is that of this process, both roles of
it, per 10^9 bytes. Where a flag has a list, all combinations are measured and make a table, or a JSON array. The
segment may belong to any engine that speaks Mooncake's protocol.

Exits with 1 if any request failed while measuring or the bytes are not right.

Examples:

    moonpath bench --segment 127.0.0.1:15123 --op write --block 64KiB --batch 16 --threads 1 --duration 2s
    moonpath bench --segment 127.0.0.1:15123 --op write,read --block 4KiB,64KiB,1MiB --threads 1,4 --verify
    moonpath bench --segment 127.0.0.1:15123 --op read --block 4KiB --batch 1 --transport tcp --json`
}

const maxThreads = 1024 // more only measure the scheduler

// Run measures every combination.
func (c *benchCmd) Run(a *app) error {
	if c.TargetBuffer < 0 {
		return usage("bench", "--target-buffer %d: want 0 or more", c.TargetBuffer)
	}
	if most := slices.Max(c.Threads); most > maxThreads {
		return usage("bench", "--threads %d: want at most %d", most, maxThreads)
	}
	return a.withPeer(c.Peer, func(p *peer) error {
		cells, err := c.cells(p)
		if err != nil {
			return err
		}
		return c.measure(a, cells)
	})
}

// cells lays out every combination and registers the memory that they share.
func (c *benchCmd) cells(p *peer) ([]*measurement, error) {
	pin, err := p.pin(c.Transport)
	if err != nil {
		return nil, err
	}
	remote, room, err := c.remote(p)
	if err != nil {
		return nil, err
	}
	var cells []*measurement
	local := uint64(0)
	for _, op := range c.Op {
		for _, block := range c.Block {
			for _, batch := range c.Batch {
				for _, threads := range c.Threads {
					l := layout{block: uint64(block), batch: int(batch), threads: int(threads), remote: room, cold: c.Cold}
					if err := l.check(); err != nil {
						return nil, err
					}
					local = max(local, l.needed())
					cells = append(cells, &measurement{
						peer: p, op: moonpath.Op(op), pin: pin, layout: l, remote: remote,
						warmUp: time.Duration(c.WarmUp), duration: time.Duration(c.Duration), verify: c.Verify, beside: c.BesideBulk,
					})
				}
			}
		}
	}
	return cells, c.allocate(p, cells, local, room)
}

// coldLocal bounds the local buffer that --cold walks; it is larger than the caches of current processors.
const coldLocal = 256 << 20

func (c *benchCmd) allocate(p *peer, cells []*measurement, local, room uint64) error {
	if c.Cold {
		local = max(local, min(room, coldLocal))
	}
	size := local
	if c.BesideBulk {
		size += bulkBytes
	}
	m, err := p.engine.Alloc(size, moonpath.AllocOptions{Populate: true, LocalOnly: true})
	if err != nil {
		return err
	}
	for _, cell := range cells {
		cell.memory, cell.layout.local = m, local
	}
	return nil // the engine frees it when it closes
}

// remote returns the peer's memory to use, without what --beside-bulk keeps for itself.
func (c *benchCmd) remote(p *peer) (addr, room uint64, err error) {
	var b segment.Buffer
	if c.Addr != nil {
		b, err = p.at(uint64(*c.Addr))
	} else {
		b, err = p.buffer(c.TargetBuffer)
	}
	if err != nil {
		return 0, 0, err
	}
	if !c.BesideBulk {
		return b.Addr, b.Len, nil
	}
	if b.Len < bulkBuffer {
		return 0, 0, usage("bench", "--beside-bulk needs %s of the peer's memory, and %s are there", config.FormatSize(bulkBuffer), config.FormatSize(b.Len))
	}
	return b.Addr, b.Len - bulkBytes, nil
}

func (c *benchCmd) measure(a *app, cells []*measurement) error {
	line := a.progress(0, "measuring")
	defer line.end()
	results := make([]*benchResult, len(cells))
	for i, m := range cells {
		line.say("measuring %d of %d: %s of %s", i+1, len(cells), m.op, m.layout.describe())
		r, err := m.run(a.ctx)
		if err != nil {
			return err
		}
		results[i] = r
		if r.err != nil && a.ctx.Err() != nil {
			return r.err
		}
	}
	line.end()
	if err := c.print(a, results); err != nil {
		return err
	}
	return firstFailure(results)
}

func (c *benchCmd) print(a *app, results []*benchResult) error {
	if len(results) == 1 {
		return a.emit(results[0], func(w io.Writer) { ratesTable(w, results, "") })
	}
	return a.emit(results, func(w io.Writer) { ratesTable(w, results, "") })
}

// firstFailure turns a result with failed requests or wrong bytes into an error.
func firstFailure(results []*benchResult) error {
	for _, r := range results {
		if r.err == nil {
			continue
		}
		if r.Errors == 0 {
			return r.err
		}
		f := describe(r.err)
		return &toolError{
			exit: exitFailed, code: xfer.Code(f.Code), name: f.Name, stage: xfer.Stage(f.Stage), path: f.Path, peer: f.Peer, errno: f.Errno, side: xfer.Side(f.Side), next: f.Next,
			detail: fmt.Sprintf("%s, %s of %s failed, the first with: %s", plural(int(r.Errors), "request"), r.Op, config.FormatSize(r.BlockBytes), f.Detail),
		}
	}
	return nil
}

// ratesTable writes one line per result.
func ratesTable(w io.Writer, results []*benchResult, indent string) {
	fmt.Fprintf(w, "%sop\tblock\tbatch\tthreads\tpath\tGB/s\tk requests/s\tp50 µs\tp99 µs\tp99.9 µs\tCPU s/GB\tverified\terrors\n", indent)
	for _, r := range results {
		verified := "-"
		if r.Verified != nil {
			verified = map[bool]string{true: "yes", false: "NO"}[*r.Verified]
		}
		fmt.Fprintf(w, "%s%s\t%s\t%d\t%d\t%s\t%.2f\t%.1f\t%.0f\t%.0f\t%.0f\t%.2f\t%s\t%d\n", indent,
			r.Op, config.FormatSize(r.BlockBytes), r.Batch, r.Threads, r.Transport, r.BytesPerSecond/1e9, r.RequestsPerSecond/1e3,
			r.Latency.P50, r.Latency.P99, r.Latency.P999, r.CPUSecondsPerGB, verified, r.Errors)
	}
}
