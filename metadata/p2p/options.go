package p2p

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// Defaults of Options, those of published engines.
const (
	DefaultPortLow        = 15000
	DefaultPortHigh       = 17000
	DefaultConnectTimeout = 5 * time.Second
	DefaultPeerPort       = 12001
)

// Options configures a Node. Only Host is required; zero values mean the defaults above.
type Options struct {
	Host string // advertised to peers, who resolve it: a bare name or literal without port and brackets
	Bind string // address to listen on; empty for all
	Port int    // control port; 0 for a random one from PortLow to PortHigh, both inclusive

	PortLow, PortHigh int

	Backlog int // connections that wait to be accepted; 0: what the system allows

	MaxFrame       uint64        // largest frame read from a peer and largest notification sent; at most ctrlframe.MaxLimit
	ConnectTimeout time.Duration // bounds the resolution of a name, and the connection to each of its addresses
	DefaultPort    int           // port of segment names that carry none
	IPv6           bool          // listen on both families, and prefer IPv6 when a name has both

	Log *slog.Logger // nil: nothing is logged
	Obs *obs.Group   // where the counters of this node appear; nil: nowhere
}

// withDefaults returns the options with zero values replaced, or what is wrong with them.
func (o Options) withDefaults() (Options, error) {
	if o.PortLow == 0 && o.PortHigh == 0 {
		o.PortLow, o.PortHigh = DefaultPortLow, DefaultPortHigh
	}
	if o.MaxFrame == 0 {
		o.MaxFrame = ctrlframe.DefaultLimit
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = DefaultConnectTimeout
	}
	if o.DefaultPort == 0 {
		o.DefaultPort = DefaultPeerPort
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Obs == nil {
		o.Obs = obs.NewGroup()
	}
	return o, o.check()
}

func (o *Options) check() error {
	switch {
	case o.Host == "":
		return badOption("no host to advertise", "name the host under which peers reach this process")
	case !isBareHost(o.Host):
		return badOption(fmt.Sprintf("host %q is not bare", o.Host), "give a name or an address without port and brackets")
	case !isPort(o.Port) && o.Port != 0:
		return badOption(fmt.Sprintf("port %d is none", o.Port), "use 1 to 65535, or 0 for a random port")
	case !isPort(o.PortLow) || !isPort(o.PortHigh) || o.PortLow > o.PortHigh:
		return badOption(fmt.Sprintf("ports %d to %d are no range", o.PortLow, o.PortHigh), "use two ports from 1 to 65535, in order")
	case !isPort(o.DefaultPort):
		return badOption(fmt.Sprintf("default port %d is none", o.DefaultPort), "use 1 to 65535")
	case o.MaxFrame > ctrlframe.MaxLimit:
		return badOption(fmt.Sprintf("frame limit of %d bytes", o.MaxFrame), fmt.Sprintf("use at most %d", ctrlframe.MaxLimit))
	case o.ConnectTimeout < 0:
		return badOption(fmt.Sprintf("connect timeout of %v", o.ConnectTimeout), "use a positive time")
	}
	return nil
}

func isPort(n int) bool { return 1 <= n && n <= 65535 }

// isBareHost refuses what would be no host any more once a port has been added.
func isBareHost(host string) bool {
	if strings.Contains(host, ":") {
		_, err := netip.ParseAddr(host)
		return err == nil
	}
	return !strings.ContainsAny(host, "[]/ ")
}

func badOption(detail, next string) *xfer.Fault {
	return &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageArgument, Detail: "control port: " + detail, Next: next}
}
