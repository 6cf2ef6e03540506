// Package config turns option tables into resolved values that know where they came from.
//
// Each part of moonpath declares its options as a table of [Setting]: key, kind, default,
// bounds, and the MC_* variables of Mooncake that set it. [Resolve] reads the table against
// the environment and any further layers (file, flag, code) and returns [Values], which
// answer typed questions and list every setting with its origin for `moonpath info`. The
// engine's table is [Engine], that of the TCP transport is [TCP]; docs/reference/settings.md
// and docs/compat/env.md are generated from the tables and from [Compat].
//
// Precedence, lowest first: default, file, environment, flag, code.
//
// Two rules decide what happens to a bad value. From the environment it is replaced by the
// default with a [Warning], because Mooncake does that and deployments share one environment
// between both. From a file, a flag or code it is an error, because somebody wrote it for us.
//
// Invariants: this is the only package that reads the process environment ([Environ],
// [LookupEnv]); Values never change once resolved, so any goroutine may read them. The
// package starts no goroutines.
package config
