package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// grace is what an initiator may take beyond its duration: to start, to finish the batch under way, to end.
const grace = 30 * time.Second

// moonpath is our own tool in both roles.
type moonpath struct {
	binary  string
	segment string // of the target, once it serves
}

func (m *moonpath) serve(ctx context.Context) (*target, error) {
	t, err := startTarget(ctx, nil, m.takeSegment, m.binary,
		"target", "--host", "127.0.0.1", "--buffer", sizeName(bufferBytes), "--json")
	if err != nil {
		return nil, err
	}
	// Backs every page of the buffer, which no measurement should pay for.
	if _, err := m.bench(ctx, m.segment, cell{"write", 16 * mib, 4, 4}, 100*time.Millisecond); err != nil {
		t.stop()
		return nil, fmt.Errorf("warm-up: %w", err)
	}
	return t, nil
}

func (m *moonpath) takeSegment(line []byte) bool {
	var ready struct{ Segment string }
	if err := json.Unmarshal(line, &ready); err != nil {
		return false
	}
	m.segment = ready.Segment
	return m.segment != ""
}

// bench measures towards a target of any kind.
func (m *moonpath) bench(ctx context.Context, segment string, c cell, d time.Duration, more ...string) (sample, error) {
	args := append([]string{
		"bench", "--segment", segment, "--op", c.Op, "--block", sizeName(c.Block), "--batch", strconv.Itoa(c.Batch),
		"--threads", strconv.Itoa(c.Submitters), "--duration", d.String(), "--warm-up", "0", "--transport", "tcp", "--json",
	}, more...)
	done, err := runChild(ctx, d+grace, nil, m.binary, args...)
	if err != nil {
		return sample{}, err
	}
	s, err := parseMoonpath(done.stdout)
	s.cpuSeconds = done.cpuSeconds
	return s, err
}

func parseMoonpath(stdout []byte) (sample, error) {
	var out struct {
		Requests int64
		Bytes    int64
		Seconds  float64
		Errors   int64
		Latency  struct{ P50, P99 float64 } `json:"latency_us"`
	}
	if err := json.Unmarshal(stdout, &out); err != nil {
		return sample{}, fmt.Errorf("moonpath bench --json: %w%s", err, lastWords(stdout))
	}
	if out.Errors != 0 {
		return sample{}, fmt.Errorf("moonpath bench: %d of %d requests failed", out.Errors, out.Requests)
	}
	s := sample{
		bytes: out.Bytes, requests: out.Requests, seconds: out.Seconds,
		latency: latency{p50: out.Latency.P50, p99: out.Latency.P99},
	}
	return s, s.check("moonpath bench")
}

// check refuses a measurement that cannot become a rate.
func (s sample) check(who string) error {
	if s.bytes <= 0 || s.requests <= 0 || s.seconds <= 0 {
		return fmt.Errorf("%s moved %d bytes in %d requests within %gs: nothing to measure", who, s.bytes, s.requests, s.seconds)
	}
	return nil
}
