package main

import (
	"fmt"
	"io"
	"time"

	"github.com/moonpath-io/moonpath"
)

type probeCmd struct {
	Name string `arg:"" name:"name" help:"The segment: HOST:PORT of the peer's control port."`
	Host string `name:"host" default:"127.0.0.1" help:"Address of the tool's own engine; it binds no other."`
}

// Help is the part of the help that examples need.
func (*probeCmd) Help() string {
	return `Sends one probe to the peer's control port and waits for the answer; no descriptor is needed. Exits with 3 if
there is none.

Examples:

    moonpath probe 127.0.0.1:15123
    moonpath probe 127.0.0.1:15123 --json --set control.connect_timeout=500ms`
}

type probeResult struct {
	Segment string  `json:"segment"`
	Alive   bool    `json:"alive"`
	Seconds float64 `json:"seconds"`
}

// Run probes the peer.
func (c *probeCmd) Run(a *app) error {
	if c.Name == "" {
		return usage("probe", "the name of the segment is empty: it is HOST:PORT of the peer's control port")
	}
	wait := a.progress(0, "probing %s", c.Name)
	defer wait.end()
	engine, err := a.open(moonpath.Options{Host: c.Host, Bind: c.Host}, quietLevel)
	if err != nil {
		return err
	}
	defer engine.Close()
	start := time.Now()
	if err := engine.Probe(a.ctx, c.Name); err != nil {
		return err
	}
	took := time.Since(start)
	wait.end()
	return a.emit(probeResult{c.Name, true, took.Seconds()}, func(w io.Writer) {
		fmt.Fprintf(w, "%s is alive: answered in %v\n", c.Name, brief(took))
	})
}
