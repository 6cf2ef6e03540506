package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// cxx is transfer_engine_bench of the published package in both roles.
type cxx struct {
	binary  string // once found
	segment string // of the target, once it serves
	port    string // of the target, seen before it is ready
	missing error
}

// venvLimit covers a download of 46 MB and packages of the distribution.
const venvLimit = 20 * time.Minute

// find makes the environment that holds the engine. Its error is the reason why there is none.
func (x *cxx) find(ctx context.Context) error {
	if x.binary != "" || x.missing != nil {
		return x.missing
	}
	x.binary, x.missing = findCxx(ctx)
	return x.missing
}

func findCxx(ctx context.Context) (string, error) {
	fmt.Fprintln(os.Stderr, "interop/venv.sh: the C++ engine (the first time, a download of 46 MB)")
	done, err := runChild(ctx, venvLimit, nil, "bash", "interop/venv.sh")
	last := strings.TrimPrefix(lastWords(done.stdout), ": ")
	if err != nil {
		if last != "" && ctx.Err() == nil {
			err = errors.New(last)
		}
		return "", err
	}
	pattern := filepath.Join(last, "lib", "python3*", "site-packages", "mooncake", "transfer_engine_bench")
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("interop/venv.sh gave %s, which has no transfer_engine_bench", last)
	}
	return found[0], nil
}

func (x *cxx) args(mode string, more ...string) []string {
	return append([]string{
		"--mode=" + mode, "--protocol=tcp", "--metadata_server=P2PHANDSHAKE", "--local_server_name=127.0.0.1",
		"--buffer_size=" + strconv.Itoa(bufferBytes),
	}, more...)
}

const (
	forceTCP = "MC_FORCE_TCP=1" // without it, the engine looks for devices
	poolOn   = "MC_TCP_ENABLE_CONNECTION_POOL=1"
	poolOff  = "MC_TCP_ENABLE_CONNECTION_POOL=0"
)

// warmUpTries is how often the first transfer to a new target may fail: it prints that it listens before it has
// published its memory.
const warmUpTries = 3

func (x *cxx) serve(ctx context.Context) (*target, error) {
	if err := x.find(ctx); err != nil {
		return nil, err
	}
	t, err := startTarget(ctx, []string{forceTCP}, x.takeSegment, x.binary, x.args("target")...)
	if err != nil {
		return nil, err
	}
	// Backs every page of the buffer, which no measurement should pay for.
	for range warmUpTries {
		if _, err = x.initiate(ctx, x.segment, true, cell{"write", 16 * mib, 4, 4}, time.Second); err == nil {
			return t, nil
		}
	}
	t.stop()
	return nil, fmt.Errorf("warm-up: %w", err)
}

var listening = regexp.MustCompile(`P2P handshake, listening on 127\.0\.0\.1:(\d+)`)

// takeSegment waits for the log line after the one that names the port: the first comes before there is a transport.
func (x *cxx) takeSegment(line []byte) bool {
	if m := listening.FindSubmatch(line); m != nil {
		x.port = string(m[1])
	}
	if x.port != "" && strings.Contains(string(line), "numa node num") {
		x.segment = "127.0.0.1:" + x.port
	}
	return x.segment != ""
}

// initiate measures towards a target of any kind. The tool takes whole seconds.
func (x *cxx) initiate(ctx context.Context, segment string, pool bool, c cell, d time.Duration) (sample, error) {
	if err := x.find(ctx); err != nil {
		return sample{}, err
	}
	seconds := int((d + time.Second - 1) / time.Second)
	env := []string{forceTCP, poolOff}
	if pool {
		env[1] = poolOn
	}
	done, err := runChild(ctx, time.Duration(seconds)*time.Second+grace, env, x.binary, x.args("initiator",
		"--segment_id="+segment, "--operation="+c.Op, "--block_size="+strconv.Itoa(c.Block),
		"--batch_size="+strconv.Itoa(c.Batch), "--threads="+strconv.Itoa(c.Submitters),
		"--duration="+strconv.Itoa(seconds), "--report_unit=GB", "--report_precision=9")...)
	if err != nil {
		return sample{}, err
	}
	s, err := parseCxx(done.stderr, c)
	s.cpuSeconds = done.cpuSeconds
	return s, err
}

var completed = regexp.MustCompile(`Test completed: duration [\d.]+, batch count (\d+), throughput ([\d.]+) GB/s`)

// parseCxx counts requests by the batches of all submitters. The duration is printed with two digits and the throughput
// with nine, so the time comes from the latter.
func parseCxx(log []byte, c cell) (sample, error) {
	m := completed.FindSubmatch(log)
	if m == nil {
		return sample{}, fmt.Errorf("the C++ engine reported no result%s", lastWords(log))
	}
	batches, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		return sample{}, fmt.Errorf("the C++ engine's batch count: %w", err)
	}
	throughput, err := strconv.ParseFloat(string(m[2]), 64)
	if err != nil {
		return sample{}, fmt.Errorf("the C++ engine's throughput: %w", err)
	}
	s := sample{requests: batches * int64(c.Batch), bytes: batches * int64(c.Batch) * int64(c.Block)}
	if throughput > 0 {
		s.seconds = float64(s.bytes) / (throughput * 1e9)
	}
	return s, s.check("the C++ engine")
}
