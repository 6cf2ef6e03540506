package main

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"os"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/obs"
)

// app is one invocation: what every command needs beside its own flags.
type app struct {
	ctx    context.Context // ends with the first SIGINT or SIGTERM
	stdin  *os.File
	stdout io.Writer
	stderr *os.File
	common *commonFlags

	engine    *moonpath.Engine // that the command opened, or nil
	engineLog *slog.Logger
	opened    time.Time
}

// defaultHost is where the tool's own engine lives unless a flag says otherwise: peers of this host only.
const defaultHost = "127.0.0.1"

const logLevelKey = "log.level"

// open starts the engine of a command; quiet is the log level where nobody set one.
func (a *app) open(o moonpath.Options, quiet string) (*moonpath.Engine, error) {
	o.Flags = a.settings()
	logger, err := a.logger(quiet)
	if err != nil {
		return nil, err
	}
	o.Logger = logger
	engine, err := moonpath.Open(a.ctx, o)
	if err == nil {
		a.engine, a.engineLog, a.opened = engine, logger, time.Now()
	}
	return engine, err
}

// settings are what the flags say, by key.
func (a *app) settings() map[string]string {
	flags := maps.Clone(a.common.Set)
	if a.common.LogLevel != "" {
		if flags == nil {
			flags = make(map[string]string)
		}
		flags[logLevelKey] = a.common.LogLevel
	}
	return flags
}

func (a *app) logger(quiet string) (*slog.Logger, error) {
	var given config.Layer
	given.Source = config.Flag
	if level, ok := a.settings()[logLevelKey]; ok {
		given.Values = map[string]string{logLevelKey: level}
	}
	values, _, err := config.Resolve(config.Engine, config.LookupEnv, given)
	if err != nil {
		return nil, err
	}
	level := quiet
	for _, s := range values.All() {
		if s.Key == logLevelKey && s.Source != config.Default {
			level = s.Value
		}
	}
	handler, err := obs.NewHandler(a.stderr, level)
	if err != nil {
		return nil, err
	}
	return slog.New(handler), nil
}
