package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/config"
)

const (
	drainBound   = 10 * time.Second
	notifyEvery  = 250 * time.Millisecond // how long a notification waits until it is shown
	quietLevel   = "WARNING"              // log level of commands that end by themselves
	serviceLevel = "INFO"                 // log level of target
)

type targetCmd struct {
	Host     string     `name:"host" default:"127.0.0.1" help:"Address that peers connect to; no other is bound."`
	Port     portFlag   `name:"port" default:"0" help:"Control port, the one in the segment's name; 0 chooses one from the settings port.min to port.max."`
	DataPort portFlag   `name:"data-port" default:"0" help:"Port of the tcp data plane; 0 chooses one likewise."`
	Buffer   []sizeFlag `name:"buffer" default:"256MiB" placeholder:"SIZE" help:"Register this much memory for peers to read and write; may be repeated. Default: ${default}."`
}

// Help is the part of the help that examples need.
func (*targetCmd) Help() string {
	return `Prints the segment's name, its buffers and transports when it is ready to serve; with --json as one line:

    {"segment":"127.0.0.1:15123","pid":4711,"buffers":[{"addr":140000000000000,"length":268435456}],"transports":["local","tcp"]}

Notifications from peers appear in the log. SIGTERM or SIGINT ends it: it serves what is under way, at most ten
seconds long, and exits with 0.

Examples:

    moonpath target --buffer 256MiB
    moonpath target --host 10.0.0.5 --port 15000 --data-port 15001 --buffer 1GiB --buffer 64MiB --json`
}

type readyLine struct {
	Segment    string        `json:"segment"`
	PID        int           `json:"pid"`
	Buffers    []readyBuffer `json:"buffers"`
	Transports []string      `json:"transports"`
}

type readyBuffer struct {
	Addr   uint64 `json:"addr"`
	Length uint64 `json:"length"`
}

// Run serves until a signal comes.
func (c *targetCmd) Run(a *app) (err error) {
	if addr, err := netip.ParseAddr(c.Host); err == nil && addr.IsUnspecified() {
		return usage("target", "--host %s is no address that peers can connect to: name one of this host", c.Host)
	}
	engine, err := a.open(moonpath.Options{Host: c.Host, Bind: c.Host, ControlPort: int(c.Port), DataPort: int(c.DataPort)}, serviceLevel)
	if err != nil {
		return err
	}
	defer func() {
		if closing := engine.Close(); err == nil {
			err = closing
		}
	}()
	ready, err := c.serve(engine)
	if err != nil {
		return err
	}
	if err := a.emit(ready, ready.text); err != nil {
		return err
	}
	if err := a.showNotifications(engine); err != nil {
		return err
	}
	drain, cancel := context.WithTimeout(context.Background(), drainBound)
	defer cancel()
	return engine.Shutdown(drain)
}

func (c *targetCmd) serve(engine *moonpath.Engine) (*readyLine, error) {
	ready := &readyLine{Segment: engine.Name(), PID: os.Getpid()}
	for _, size := range c.Buffer {
		m, err := engine.Alloc(uint64(size), moonpath.AllocOptions{Populate: true})
		if err != nil {
			return nil, err
		}
		ready.Buffers = append(ready.Buffers, readyBuffer{Addr: uint64(m.At(0)), Length: m.Len()})
	}
	for _, t := range engine.Transports() {
		if t.Installed {
			ready.Transports = append(ready.Transports, t.Name)
		}
	}
	return ready, nil
}

func (r *readyLine) text(w io.Writer) {
	fmt.Fprintf(w, "segment\t%s\n", r.Segment)
	fmt.Fprintf(w, "process\t%d\n", r.PID)
	for i, b := range r.Buffers {
		fmt.Fprintf(w, "buffer %d\t%s  %s\n", i, hex(b.Addr), config.FormatSize(b.Length))
	}
	fmt.Fprintf(w, "transports\t%s\n", strings.Join(r.Transports, ", "))
	fmt.Fprintf(w, "serving until SIGTERM or Ctrl-C; try: moonpath bench --segment %s\n", r.Segment)
}

// showNotifications logs what peers send until the signal comes.
func (a *app) showNotifications(engine *moonpath.Engine) error {
	log, err := a.logger(serviceLevel)
	if err != nil {
		return err
	}
	show := func() {
		for _, n := range engine.GetNotifies() {
			log.Info("notification", "name", n.Name, "text", n.Text)
		}
	}
	defer show() // what came since the last tick
	tick := time.NewTicker(notifyEvery)
	defer tick.Stop()
	for {
		select {
		case <-a.ctx.Done():
			return nil
		case <-tick.C:
			show()
		}
	}
}
