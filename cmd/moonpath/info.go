package main

import (
	"fmt"
	"io"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/transport"
)

type infoCmd struct {
	Host string `name:"host" default:"127.0.0.1" help:"Address of the engine that is asked; it binds no other."`
}

// Help is the part of the help that examples need.
func (*infoCmd) Help() string {
	return `Opens an engine as every command does, and shows what it found: every transport that this version knows, ready,
absent or broken, with the reason and what would change it; every setting with its value and where that came from;
and what the environment says that was not taken.

Examples:

    moonpath info
    MC_TCP_PROTO=1 moonpath info --set tcp.lanes=2 --json`
}

type infoView struct {
	Version    string                   `json:"version"`
	Transports []moonpath.TransportInfo `json:"transports"`
	Settings   []config.Resolved        `json:"settings"`
	Warnings   []warningView            `json:"warnings"`
}

type warningView struct {
	Env  string `json:"env"`
	Text string `json:"text"`
}

// Run prints what an engine finds.
func (c *infoCmd) Run(a *app) error {
	engine, err := a.open(moonpath.Options{Host: c.Host, Bind: c.Host}, quietLevel)
	if err != nil {
		return err
	}
	defer engine.Close()
	v := &infoView{
		Version: moonpath.Version(), Transports: engine.Transports(), Settings: engine.Settings(), Warnings: []warningView{},
	}
	for _, w := range engine.Warnings() {
		v.Warnings = append(v.Warnings, warningView{w.Env, w.Text})
	}
	return a.emit(v, v.text)
}

func (v *infoView) text(w io.Writer) {
	fmt.Fprintf(w, "moonpath %s\n\nTransports\n", v.Version)
	for _, t := range v.Transports {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", t.Name, t.Availability.State, availability(t))
	}
	fmt.Fprintf(w, "\nSettings\n")
	for _, s := range v.Settings {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", s.Key, s.Value, origin(s))
	}
	for _, warning := range v.Warnings {
		fmt.Fprintf(w, "\nwarning: %s: %s\n", warning.Env, warning.Text)
	}
}

func availability(t moonpath.TransportInfo) string {
	if t.Availability.State == transport.Ready {
		if t.Installed {
			return t.Summary
		}
		return t.Summary + " (not installed)"
	}
	text := t.Availability.Reason
	if t.Availability.Next != "" {
		text += "; " + t.Availability.Next
	}
	return text
}

func origin(s config.Resolved) string {
	if s.Source == config.Environment {
		return "environment " + s.Env
	}
	if s.Env != "" {
		return s.Source.String() + "\t" + s.Env
	}
	return s.Source.String()
}
