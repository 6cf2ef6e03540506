package main

import (
	"fmt"

	"github.com/moonpath-io/moonpath/config"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// cell is what a pair is asked to do. It is part of the key of a row, so it stays comparable.
type cell struct {
	Op         string `json:"op"`
	Block      int    `json:"block_bytes"`
	Batch      int    `json:"batch"`
	Submitters int    `json:"submitters"`
}

func (c cell) String() string {
	return fmt.Sprintf("%s %s × %d, %d at once", c.Op, sizeName(c.Block), c.Batch, c.Submitters)
}

func sizeName(n int) string { return config.FormatSize(uint64(n)) }

// shapes are the requests that are compared: what caches, queues, serving and checkpoints look like.
var shapes = []struct{ block, batch int }{
	{4 * kib, 1},
	{4 * kib, 64},
	{64 * kib, 16},
	{mib, 8},
	{16 * mib, 4},
}

var (
	ops            = []string{"write", "read"}
	submitterSteps = []int{1, 2, 4}
)

// bufferBytes is the memory of a target: the largest cell, 16 MiB × 4 × 4, fills it exactly.
const bufferBytes = 256 * mib

// matrix lists the cells whose block is wanted.
func matrix(wanted func(block int) bool) []cell {
	var cells []cell
	for _, s := range shapes {
		if !wanted(s.block) {
			continue
		}
		for _, op := range ops {
			for _, n := range submitterSteps {
				cells = append(cells, cell{op, s.block, s.batch, n})
			}
		}
	}
	return cells
}
