package config

import (
	"os"
	"strings"
)

// Environ returns a copy of the process environment as name=value pairs. With [LookupEnv] it
// is the only place in moonpath that reads the environment.
func Environ() []string { return os.Environ() }

// LookupEnv returns the value of an environment variable and whether it is set; it is what
// [Resolve] is given outside tests.
func LookupEnv(name string) (string, bool) { return os.LookupEnv(name) }

// Lookup returns what [Resolve] is given for an environment in the form of Environ. Of a name that occurs
// twice the last value counts.
func Lookup(environ []string) func(name string) (string, bool) {
	values := make(map[string]string, len(environ))
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			values[name] = value
		}
	}
	return func(name string) (string, bool) {
		v, ok := values[name]
		return v, ok
	}
}
