package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/moonpath-io/moonpath/internal/netlab"
)

const (
	installLimit = 3 * time.Minute
	startLimit   = 20 * time.Second
	grace        = 30 * time.Second // beyond the time that is measured
	iperfPort    = "5201"           // the namespace is ours, so the port is free
)

// haveIperf installs iperf3 where that is ours to do.
func haveIperf(ctx context.Context) error {
	if _, err := exec.LookPath("iperf3"); err == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return errors.New("iperf3 is not installed, and installing it takes root and apt-get")
	}
	fmt.Fprintln(os.Stderr, "apt-get install iperf3")
	ctx, cancel := context.WithTimeout(ctx, installLimit)
	defer cancel()
	for _, args := range [][]string{{"update", "-qq"}, {"install", "-qq", "-y", "--no-install-recommends", "iperf3"}} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(cmd.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w%s", args[0], err, lastWords(out))
		}
	}
	return nil
}

// servers are what serves on the far host.
type servers struct {
	lab     *netlab.Lab
	segment string
	cancel  context.CancelFunc
	running []*exec.Cmd
}

func startServers(ctx context.Context, lab *netlab.Lab, binary string) (*servers, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &servers{lab: lab, cancel: cancel}
	var ready struct{ Segment string }
	line, err := s.start(ctx, "segment", binary, "target", "--host", lab.Far.Address, "--buffer", "64MiB", "--json")
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err == nil {
		s.segment = ready.Segment
		_, err = s.start(ctx, "Server listening", "iperf3", "--server", "--bind", lab.Far.Address, "--port", iperfPort, "--forceflush")
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// start starts a server and returns the line with which it says that it serves.
func (s *servers) start(ctx context.Context, ready, name string, args ...string) ([]byte, error) {
	cmd := s.lab.Far.Command(ctx, name, args...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.running = append(s.running, cmd)
	got := make(chan []byte, 1)
	go func() { // ends with the server, and reads what it prints so that it never waits
		defer close(got)
		found := false
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if !found && strings.Contains(lines.Text(), ready) {
				found = true
				got <- bytes.Clone(lines.Bytes())
			}
		}
	}()
	select {
	case line, ok := <-got:
		if !ok {
			return nil, fmt.Errorf("%s ended before it served", filepath.Base(name))
		}
		return line, nil
	case <-time.After(startLimit):
		return nil, fmt.Errorf("%s did not serve within %v", filepath.Base(name), startLimit)
	}
}

func (s *servers) stop() {
	s.cancel()
	for _, cmd := range s.running {
		cmd.Wait() // it was killed, which is no news
	}
}

// output runs a program on the near host to its end.
func (s *servers) output(ctx context.Context, limit time.Duration, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := s.lab.Near.Command(ctx, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w%s", filepath.Base(name), err, lastWords(append(out, stderr.Bytes()...)))
	}
	return out, nil
}

// iperf measures in the direction in which the payload of the operation goes.
func (s *servers) iperf(ctx context.Context, c cell, d time.Duration) (bytesPerSecond float64, err error) {
	seconds := int((d + time.Second - 1) / time.Second)
	args := []string{"--client", s.lab.Far.Address, "--port", iperfPort, "--parallel", strconv.Itoa(c.streams), "--length", "1M",
		"--time", strconv.Itoa(seconds), "--omit", "1", "--json"}
	if c.op == "read" {
		args = append(args, "--reverse")
	}
	out, err := s.output(ctx, d+grace, "iperf3", args...)
	if err != nil {
		return 0, err
	}
	return parseIperf(out)
}

func parseIperf(out []byte) (float64, error) {
	var result struct {
		Error string
		End   struct {
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	if err := json.Unmarshal(out, &result); err != nil {
		return 0, fmt.Errorf("iperf3 --json: %w", err)
	}
	if result.Error != "" || result.End.Received.Rate <= 0 {
		return 0, fmt.Errorf("iperf3 received nothing: %s", result.Error)
	}
	return result.End.Received.Rate / 8, nil
}

// bench measures with the tool, and asks the kernel meanwhile which congestion control its connections have.
func (s *servers) bench(ctx context.Context, binary string, c cell, d time.Duration) (bytesPerSecond float64, congestion string, err error) {
	binary, err = filepath.Abs(binary)
	if err != nil {
		return 0, "", err
	}
	looked := make(chan string, 1)
	timer := time.AfterFunc(time.Second+d/2, func() {
		out, err := s.output(ctx, startLimit, "ss", "-tinHO", "state", "established")
		if err != nil {
			looked <- err.Error()
			return
		}
		looked <- parseCongestion(string(out))
	})
	out, err := s.output(ctx, d+grace, binary, "bench", "--host", s.lab.Near.Address, "--segment", s.segment, "--op", c.op, "--block", "1MiB",
		"--batch", "8", "--threads", strconv.Itoa(c.submitters), "--duration", d.String(), "--warm-up", "1s", "--transport", "tcp",
		"--set", "tcp.lanes="+strconv.Itoa(c.streams), "--json")
	if !timer.Stop() {
		congestion = <-looked
	}
	if err != nil {
		return 0, congestion, err
	}
	rate, err := parseBench(out)
	return rate, congestion, err
}

func parseBench(out []byte) (float64, error) {
	var result struct {
		Rate   float64 `json:"bytes_per_second"`
		Errors int
	}
	if err := json.Unmarshal(out, &result); err != nil {
		return 0, fmt.Errorf("moonpath bench --json: %w", err)
	}
	if result.Errors > 0 || result.Rate <= 0 {
		return 0, fmt.Errorf("moonpath bench moved nothing, or %d requests failed", result.Errors)
	}
	return result.Rate, nil
}

// parseCongestion finds the congestion controls in what ss -ti prints, each once.
func parseCongestion(out string) string {
	var found []string
	for _, word := range strings.Fields(out) {
		switch word {
		case "bbr", "cubic", "reno", "dctcp", "htcp", "vegas", "westwood":
			if !strings.Contains(strings.Join(found, " "), word) {
				found = append(found, word)
			}
		}
	}
	return strings.Join(found, ", ")
}

// lastWords is the last line of output that says anything, as the end of a sentence.
func lastWords(output []byte) string {
	lines := bytes.Split(bytes.TrimSpace(output), []byte("\n"))
	if last := bytes.TrimSpace(lines[len(lines)-1]); len(last) > 0 {
		return ": " + string(last)
	}
	return ""
}
