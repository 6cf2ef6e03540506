package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/moonpath-io/moonpath/internal/netlab"
)

// line is a path with the name that the page gives it.
type line struct {
	name    string
	path    netlab.Path
	buffers int // largest socket buffer that the kernel chooses by itself, on both hosts; 0: what it is anyway
}

const gigabit = 1e9

// lines are what two hosts may have between them. The last two have so much under way that a limit of our own shows, on the
// last one also where the kernel has none.
var lines = []line{
	{"1 ms, 1 Gbit/s", netlab.Path{Delay: time.Millisecond, Rate: gigabit}, 0},
	{"1 ms, 1 Gbit/s, 0.1 % lost", netlab.Path{Delay: time.Millisecond, Rate: gigabit, Loss: 0.001}, 0},
	{"1 ms, 1 Gbit/s, 1 % lost", netlab.Path{Delay: time.Millisecond, Rate: gigabit, Loss: 0.01}, 0},
	{"10 ms, 1 Gbit/s", netlab.Path{Delay: 10 * time.Millisecond, Rate: gigabit}, 0},
	{"10 ms, 1 Gbit/s, 0.1 % lost", netlab.Path{Delay: 10 * time.Millisecond, Rate: gigabit, Loss: 0.001}, 0},
	{"10 ms, 1 Gbit/s, 1 % lost", netlab.Path{Delay: 10 * time.Millisecond, Rate: gigabit, Loss: 0.01}, 0},
	{"10 ms, 4 Gbit/s", netlab.Path{Delay: 10 * time.Millisecond, Rate: 4 * gigabit}, 0},
	{"10 ms, 4 Gbit/s, large buffers", netlab.Path{Delay: 10 * time.Millisecond, Rate: 4 * gigabit}, 64 << 20},
}

// shape is how many connections are used, and how many submitters keep them busy.
type shape struct {
	streams, submitters int
	gated               bool
}

// shapes are measured on each line. One submitter that waits for each batch of 8 MiB before it submits the next leaves the
// line idle for a round trip each time, which iperf3 never does: that cell is there to show it, and decides nothing.
var shapes = []shape{{4, 4, true}, {1, 4, true}, {4, 1, false}}

const mtu = 9000

// cell is one row of the page.
type cell struct {
	line line
	op   string
	shape
}

func (c cell) String() string {
	return fmt.Sprintf("%s, %s, %d streams, %d at once", c.line.name, c.op, c.streams, c.submitters)
}

// row is what the measurements of a cell came to, in bytes per second.
type row struct {
	cell
	moonpath, iperf []float64
	congestion      string // control of moonpath's connections, as the kernel tells it
	skipped         error
}

type campaign struct {
	options
	progress io.Writer
	rows     []row
}

func (c *campaign) run(ctx context.Context) error {
	for _, l := range lines {
		var cells []cell
		for _, op := range []string{"write", "read"} {
			for _, s := range shapes {
				cells = append(cells, cell{l, op, s})
			}
		}
		cells = slices.DeleteFunc(cells, func(x cell) bool { return !c.only.MatchString(x.String()) })
		if len(cells) == 0 {
			continue
		}
		if err := c.measureLine(ctx, l, cells); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

func (c *campaign) measureLine(ctx context.Context, l line, cells []cell) (err error) {
	lab, err := netlab.New(netlab.Options{Path: l.path, MTU: mtu, Seed: 1})
	if err != nil {
		return err
	}
	defer func() {
		if closing := lab.Close(); err == nil {
			err = closing
		}
	}()
	if err := setBuffers(ctx, lab, l.buffers); err != nil {
		return err
	}
	s, err := startServers(ctx, lab, c.moonpath)
	if err != nil {
		return err
	}
	defer s.stop()
	for _, x := range cells {
		r := row{cell: x}
		for range c.rounds {
			if r.skipped = c.measureRound(ctx, s, &r); r.skipped != nil {
				break
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.rows = append(c.rows, r)
		fmt.Fprintf(c.progress, "%s: %s\n", x, r.summary())
	}
	return nil
}

// setBuffers does what the operator of a fast and long network does.
func setBuffers(ctx context.Context, lab *netlab.Lab, most int) error {
	if most == 0 {
		return nil
	}
	for _, h := range []*netlab.Host{lab.Near, lab.Far} {
		for _, key := range []string{"tcp_rmem", "tcp_wmem"} {
			script := fmt.Sprintf("echo 4096 131072 %d > /proc/sys/net/ipv4/%s", most, key)
			if out, err := h.Command(ctx, "sh", "-c", script).CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w%s", key, err, lastWords(out))
			}
		}
	}
	return nil
}

func (c *campaign) measureRound(ctx context.Context, s *servers, r *row) error {
	theirs, err := s.iperf(ctx, r.cell, c.duration)
	if err != nil {
		return err
	}
	ours, congestion, err := s.bench(ctx, c.moonpath, r.cell, c.duration)
	if err != nil {
		return err
	}
	r.iperf, r.moonpath, r.congestion = append(r.iperf, theirs), append(r.moonpath, ours), congestion
	return nil
}
