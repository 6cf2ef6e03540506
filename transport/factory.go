package transport

import (
	"context"
	"log/slog"

	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/obs"
)

// Factory describes a transport before it is opened.
type Factory struct {
	Name     string
	Summary  string           // one line for moonpath info
	Settings []config.Setting // its option table
	// Probe looks whether the transport can work on this host, without opening it.
	Probe func() Availability
	// Open starts it. Listeners are bound when Open returns.
	Open func(ctx context.Context, env Env) (Transport, error)
}

// Env is all that a transport may use of its engine.
type Env struct {
	Regions     *mem.Table
	Incarnation uint64 // of this engine; what a peer's hello must name
	Bind        string // host to bind; "" is the wildcard
	Port        int    // port of the data plane; 0 chooses one in the configured range
	Settings    *config.Values
	Log         *slog.Logger
	Obs         *obs.Group // this transport's part of the counters
	Changed     func()     // to be called when offers or the descriptor part changed
}

// State is one of three honest answers to "can it be used here".
type State string

const (
	// Ready means that the transport can be installed.
	Ready State = "ready"
	// Absent means that something it needs is not there, or was left out.
	Absent State = "absent"
	// Broken means that what it needs is there and does not work.
	Broken State = "broken"
)

// Availability is a state with its reason and what would change it.
type Availability struct {
	State  State  `json:"state"`
	Code   string `json:"code,omitempty"`   // "not-built", "build-tag", "library", "device", "permission", "configured-off"
	Reason string `json:"reason,omitempty"` // empty if ready
	Next   string `json:"next,omitempty"`
}
