package moonpath

import (
	"log/slog"
	"slices"

	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/transport/all"
)

// Options configure an engine. The zero value with a Host is usable.
type Options struct {
	// Host is what peers are told: a bare name or literal that they can resolve.
	Host string
	// Bind is the address that the engine listens on: "" is Host, "0.0.0.0" or "::" is every interface.
	Bind string
	// ControlPort and DataPort are bound as given; 0 chooses free ones in the configured range.
	ControlPort, DataPort int
	// Transports names what is installed at once; nil is everything that is ready. The local transport is
	// always there.
	Transports []string
	// Settings and Flags set options by key (docs/reference/settings.md), with the precedence of code and
	// of command line flags. Environ is used instead of the process's environment if not nil.
	Settings, Flags map[string]string
	Environ         []string
	// Logger receives what the engine has to say; nil discards it.
	Logger *slog.Logger
}

// settings returns the table of all options.
func settings() []config.Setting {
	table := slices.Clone(config.Engine)
	for _, f := range all.Factories() {
		table = append(table, f.Settings...)
	}
	return table
}

// resolve gives every option its value and says what was doubtful in the environment.
func (o *Options) resolve() (*config.Values, []config.Warning, error) {
	environ := o.Environ
	if environ == nil {
		environ = config.Environ()
	}
	v, warnings, err := config.Resolve(settings(), config.Lookup(environ), config.Layer{Source: config.Flag, Values: o.Flags}, config.Layer{Source: config.Code, Values: o.Settings})
	warnings = append(warnings, config.UnknownEnv(environ, settings())...)
	warnings = append(warnings, config.IgnoredEnv(environ)...)
	return v, warnings, err
}
