package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// commandLine is the whole grammar: flags for every command, and the commands in the order of the help.
type commandLine struct {
	Common commonFlags `embed:"" group:"Flags of every command:"`

	Target  targetCmd  `cmd:"" help:"Serve memory to peers until SIGTERM."`
	Write   writeCmd   `cmd:"" help:"Write a file, or standard input, into a peer's memory."`
	Read    readCmd    `cmd:"" help:"Read a peer's memory into a file, or to standard output."`
	Bench   benchCmd   `cmd:"" help:"Measure throughput, latency and CPU time towards a peer."`
	Demo    demoCmd    `cmd:"" help:"Two engines on this host: verified transfers, the path of each batch, and rates."`
	Info    infoCmd    `cmd:"" help:"List transports with their state, and every setting with its origin."`
	Explain explainCmd `cmd:"" help:"Show which path a request would take, and why not another."`
	Segment segmentCmd `cmd:"" help:"Show a peer's descriptor."`
	Probe   probeCmd   `cmd:"" help:"Ask whether a peer is alive."`
	Notify  notifyCmd  `cmd:"" help:"Send a peer a notification."`
	Version versionCmd `cmd:"" help:"Print the versions of this build and of what it speaks."`
}

// commonFlags may stand before or after the command.
type commonFlags struct {
	JSON     bool              `name:"json" help:"Print one JSON value; errors, too, as the last line of standard error."`
	LogLevel string            `name:"log-level" placeholder:"LEVEL" help:"Log to standard error from this level on: TRACE, INFO, WARNING or ERROR. Default: the setting log.level where it was set, else INFO for target and WARNING for other commands."`
	Set      map[string]string `name:"set" mapsep:"none" placeholder:"KEY=VALUE" help:"Set one of the settings that moonpath info lists; may be repeated."`
}

func newParser(line *commandLine) *kong.Kong {
	return kong.Must(line,
		kong.Name("moonpath"),
		kong.Description(description()),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, NoAppDescFormat: true, WrapUpperBound: 110}),
	)
}

func description() string {
	var b strings.Builder
	b.WriteString(`moonpath moves memory between processes over the best path there is, speaks the protocol of
Mooncake's Transfer Engine, and says which path it took and why.

A first round:
  moonpath demo                                                   everything at once, on this host
  moonpath target --buffer 256MiB                                 serves; prints its segment name
  moonpath write --segment 127.0.0.1:15123 --file in.bin          into the first buffer of that segment
  moonpath bench --segment 127.0.0.1:15123 --op write,read        how fast

Segment names are HOST:PORT of a peer's control port. Sizes are bytes, or have a unit: 64KiB, 2GB.

Exit codes:
`)
	for _, e := range exitCodes {
		b.WriteString("  " + e.label() + "  " + e.meaning + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}
