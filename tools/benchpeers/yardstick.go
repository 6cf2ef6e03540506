package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// yardstick is tools/yardstick in both roles.
type yardstick struct {
	binary string
	addr   string
	base   uint64
}

const buildLimit = 5 * time.Minute

func (y *yardstick) serve(ctx context.Context) (*target, error) {
	if _, err := runChild(ctx, buildLimit, []string{"CGO_ENABLED=0"},
		"go", "build", "-o", y.binary, "./tools/yardstick"); err != nil {
		return nil, err
	}
	return startTarget(ctx, nil, y.takeAddress, y.binary, "target", "--memory", strconv.Itoa(bufferBytes))
}

func (y *yardstick) takeAddress(line []byte) bool {
	var ready struct {
		Addr string
		Base uint64
	}
	if err := json.Unmarshal(line, &ready); err != nil {
		return false
	}
	y.addr, y.base = ready.Addr, ready.Base
	return y.addr != "" && y.base != 0
}

func (y *yardstick) initiate(ctx context.Context, c cell, d time.Duration) (sample, error) {
	done, err := runChild(ctx, d+grace, nil, y.binary,
		"init", "--addr", y.addr, "--base", strconv.FormatUint(y.base, 10), "--op", c.Op,
		"--block", strconv.Itoa(c.Block), "--batch", strconv.Itoa(c.Batch), "--threads", strconv.Itoa(c.Submitters),
		"--duration", d.String(), "--json")
	if err != nil {
		return sample{}, err
	}
	s, err := parseYardstick(done.stdout)
	s.cpuSeconds = done.cpuSeconds
	return s, err
}

func parseYardstick(stdout []byte) (sample, error) {
	var out struct {
		Requests, Bytes int64
		Seconds         float64
	}
	if err := json.Unmarshal(stdout, &out); err != nil {
		return sample{}, fmt.Errorf("yardstick init --json: %w%s", err, lastWords(stdout))
	}
	s := sample{bytes: out.Bytes, requests: out.Requests, seconds: out.Seconds}
	return s, s.check("yardstick")
}
