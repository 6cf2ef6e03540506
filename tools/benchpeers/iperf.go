package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// iperf is iperf3, which moves bytes through sockets from one buffer and looks at none of them.
type iperf struct {
	port string
}

const (
	installLimit = 3 * time.Minute
	iperfBlock   = mib
)

func (i *iperf) serve(ctx context.Context) (*target, error) {
	if err := haveIperf(ctx); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	i.port = strconv.Itoa(port)
	return startTarget(ctx, nil, func(line []byte) bool { return strings.Contains(string(line), "Server listening") },
		"iperf3", "--server", "--bind", "127.0.0.1", "--port", i.port, "--forceflush")
}

// haveIperf installs it where that is ours to do.
func haveIperf(ctx context.Context) error {
	if _, err := exec.LookPath("iperf3"); err == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return errors.New("iperf3 is not installed, and installing it takes root and apt-get")
	}
	fmt.Fprintln(os.Stderr, "apt-get install iperf3")
	quiet := []string{"DEBIAN_FRONTEND=noninteractive"}
	install := []string{"install", "-qq", "-y", "--no-install-recommends", "iperf3"}
	if _, err := runChild(ctx, installLimit, quiet, "apt-get", install...); err == nil {
		return nil
	}
	if _, err := runChild(ctx, installLimit, quiet, "apt-get", "update", "-qq"); err != nil {
		return fmt.Errorf("iperf3 is not installed: %w", err)
	}
	if _, err := runChild(ctx, installLimit, quiet, "apt-get", install...); err != nil {
		return fmt.Errorf("iperf3 is not installed: %w", err)
	}
	return nil
}

// freePort is a port that was free a moment ago: iperf3 cannot choose one and say which.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// initiate uses one stream per submitter. iperf3 takes whole seconds.
func (i *iperf) initiate(ctx context.Context, c cell, d time.Duration) (sample, error) {
	seconds := int((d + time.Second - 1) / time.Second)
	done, err := runChild(ctx, time.Duration(seconds)*time.Second+grace, nil, "iperf3", "--client", "127.0.0.1", "--port", i.port,
		"--parallel", strconv.Itoa(c.Submitters), "--length", strconv.Itoa(c.Block), "--time", strconv.Itoa(seconds), "--json")
	if err != nil {
		return sample{}, err
	}
	s, err := parseIperf(done.stdout, c)
	s.cpuSeconds = done.cpuSeconds
	return s, err
}

// parseIperf takes what has arrived, not what was sent.
func parseIperf(stdout []byte, c cell) (sample, error) {
	var out struct {
		Error string
		End   struct {
			Received struct {
				Bytes   int64
				Seconds float64
			} `json:"sum_received"`
		}
	}
	if err := json.Unmarshal(stdout, &out); err != nil {
		return sample{}, fmt.Errorf("iperf3 --json: %w%s", err, lastWords(stdout))
	}
	if out.Error != "" {
		return sample{}, fmt.Errorf("iperf3: %s", out.Error)
	}
	r := out.End.Received
	s := sample{bytes: r.Bytes, requests: r.Bytes / int64(c.Block), seconds: r.Seconds}
	return s, s.check("iperf3")
}
