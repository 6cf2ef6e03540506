package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const (
	// maxBatch keeps headers and statuses of a batch far below what socket buffers hold, so that a lane may take turns:
	// send a whole batch before it reads.
	maxBatch = 1024
	// grace is how long after the end of the measurement an exchange may still take.
	grace = 30 * time.Second
)

// load is what one run of the initiator does.
type load struct {
	addr     string // data port of the target
	base     uint64 // address of the target's buffer
	write    bool
	block    int
	batch    int
	threads  int
	turns    bool // send a whole batch before reading any answer
	duration time.Duration
}

func (l load) window() int { return l.block * l.batch }

// result is what one run moved.
type result struct {
	Op                string  `json:"op"`
	BlockBytes        int     `json:"block_bytes"`
	Batch             int     `json:"batch"`
	Threads           int     `json:"threads"`
	Requests          int64   `json:"requests"`
	Bytes             int64   `json:"bytes"`
	Seconds           float64 `json:"seconds"`
	BytesPerSecond    float64 `json:"bytes_per_second"`
	RequestsPerSecond float64 `json:"requests_per_second"`
	CPUSeconds        float64 `json:"cpu_seconds"`
}

// run gives every submitter a connection and its own window, at the same offset here and at the target, and repeats
// batches, at least one, until the duration is over. local holds the windows of all submitters.
func (l load) run(ctx context.Context, local []byte) (result, error) {
	lanes := make([]*lane, l.threads)
	for i := range lanes {
		offset := i * l.window()
		lane, err := l.dial(ctx, local[offset:offset+l.window()], l.base+uint64(offset))
		if err != nil {
			return result{}, err
		}
		defer lane.c.Close()
		lanes[i] = lane
	}

	batches := make([]int64, l.threads)
	cpu, start := cpuSeconds(), time.Now()
	end := start.Add(l.duration)
	group, ctx := errgroup.WithContext(ctx)
	for i, lane := range lanes {
		group.Go(func() error {
			stop := context.AfterFunc(ctx, func() { lane.c.Close() })
			defer stop()
			if err := lane.c.SetDeadline(end.Add(grace)); err != nil {
				return err
			}
			for batches[i] == 0 || time.Now().Before(end) {
				if err := lane.exchange(); err != nil {
					return fmt.Errorf("submitter %d, batch %d: %w (a target hangs up on a request outside its buffer: "+
						"check --base, and that block × batch × threads fits there)", i, batches[i], err)
				}
				batches[i]++
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return result{}, err
	}
	seconds, cpu := time.Since(start).Seconds(), cpuSeconds()-cpu
	return l.result(batches, seconds, cpu), nil
}

func (l load) result(batches []int64, seconds, cpu float64) result {
	r := result{
		Op: "read", BlockBytes: l.block, Batch: l.batch, Threads: l.threads,
		Seconds: seconds, CPUSeconds: cpu,
	}
	if l.write {
		r.Op = "write"
	}
	for _, n := range batches {
		r.Requests += n * int64(l.batch)
	}
	r.Bytes = r.Requests * int64(l.block)
	r.BytesPerSecond = float64(r.Bytes) / seconds
	r.RequestsPerSecond = float64(r.Requests) / seconds
	return r
}

// lane is one connection with the one batch that it repeats.
type lane struct {
	c        *conn
	write    bool
	turns    bool
	batch    int
	headers  []byte
	statuses []byte
	blocks   [][]byte
	vector   []unix.Iovec
	one      [1]unix.Iovec
}

func (l load) dial(ctx context.Context, local []byte, remote uint64) (*lane, error) {
	dialer := net.Dialer{Timeout: grace}
	c, err := dialer.DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return nil, fmt.Errorf("connect to the target: %w", err)
	}
	v, err := newConn(c.(*net.TCPConn))
	if err != nil {
		c.Close()
		return nil, err
	}
	n := &lane{
		c: v, write: l.write, turns: l.turns, batch: l.batch,
		headers:  make([]byte, l.batch*headerBytes),
		statuses: make([]byte, l.batch*statusBytes),
		vector:   make([]unix.Iovec, 0, 2*l.batch),
	}
	h := header{size: uint64(l.block), op: opRead}
	if l.write {
		h.op = opWrite
	}
	for i := range l.batch {
		h.addr = remote + uint64(i*l.block)
		h.put(n.headers[i*headerBytes:])
		n.blocks = append(n.blocks, local[i*l.block:(i+1)*l.block])
	}
	return n, nil
}

func (n *lane) exchange() error {
	var err error
	if n.write {
		err = n.writeBatch()
	} else {
		err = n.readBatch()
	}
	if err != nil {
		return err
	}
	return n.checkStatuses()
}

func (n *lane) writeBatch() error {
	n.one[0] = entry(n.statuses)
	payload := n.interleave(n.headers, headerBytes)
	if n.turns {
		return n.inTurns(payload, n.one[:])
	}
	return n.beside(
		func() error { return n.c.readAll(n.one[:]) },
		func() error { return n.c.writeAll(payload) })
}

func (n *lane) readBatch() error {
	n.one[0] = entry(n.headers)
	payload := n.interleave(n.statuses, statusBytes)
	if n.turns {
		return n.inTurns(n.one[:], payload)
	}
	return n.beside(
		func() error { return n.c.writeAll(n.one[:]) },
		func() error { return n.c.readAll(payload) })
}

func (n *lane) inTurns(out, in []unix.Iovec) error {
	if err := n.c.writeAll(out); err != nil {
		return err
	}
	return n.c.readAll(in)
}

// beside moves the payload while a helper moves the other direction, as an engine must whose batches have no bound.
func (n *lane) beside(helper, payload func() error) error {
	helped := make(chan error, 1)
	go func() { helped <- helper() }()
	err := payload()
	return cmp.Or(err, <-helped)
}

// interleave is the vector of a whole batch: before each block, its piece of fixed.
func (n *lane) interleave(fixed []byte, size int) []unix.Iovec {
	n.vector = n.vector[:0]
	for i, block := range n.blocks {
		n.vector = append(n.vector, entry(fixed[i*size:(i+1)*size]), entry(block))
	}
	return n.vector
}

func (n *lane) checkStatuses() error {
	for i := range n.batch {
		if status := binary.LittleEndian.Uint64(n.statuses[i*statusBytes:]); status != statusOK {
			return fmt.Errorf("request %d of the batch: status %#x, want %#x", i, status, statusOK)
		}
	}
	return nil
}
