package config

import "os"

// Environ returns a copy of the process environment as name=value pairs. With [LookupEnv] it
// is the only place in moonpath that reads the environment.
func Environ() []string { return os.Environ() }

// LookupEnv returns the value of an environment variable and whether it is set; it is what
// [Resolve] is given outside tests.
func LookupEnv(name string) (string, bool) { return os.LookupEnv(name) }
