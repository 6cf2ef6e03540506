package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// lastFlag is --last, alone or with a number.
type lastFlag int

// IsBool lets the flag stand alone.
func (lastFlag) IsBool() bool { return true }

// Decode takes the number that may follow, after a space or an equals sign.
func (l *lastFlag) Decode(ctx *kong.DecodeContext) error {
	*l = math.MaxInt
	next := ctx.Scan.Peek()
	text := fmt.Sprint(next.Value)
	n, err := strconv.ParseUint(text, 10, 31)
	if next.Type != kong.FlagValueToken && err != nil {
		return nil // the next token is something else
	}
	ctx.Scan.Pop()
	if err != nil || n == 0 {
		return fmt.Errorf("--last %s: want a number of events, at least 1, or none for all", text)
	}
	*l = lastFlag(n)
	return nil
}

// last prints the newest kept run.
func (c *explainCmd) last(a *app) error {
	r, err := lastRun()
	if err != nil {
		return err
	}
	if c.Segment != "" {
		r.only(c.Segment)
	}
	if extra := len(r.Events) - int(c.Last); extra > 0 {
		r.Events = r.Events[extra:]
		r.Dropped += extra
	}
	return a.emit(r, r.text)
}

// only leaves the events about one segment.
func (r *runView) only(segment string) {
	kept := []eventView{}
	for _, e := range r.Events {
		if e.Subject == segment {
			kept = append(kept, e)
		}
	}
	r.Events = kept
}

func (r *runView) text(w io.Writer) {
	how := "ended well"
	if r.Error != nil {
		how = fmt.Sprintf("failed with exit code %d: %s", r.Error.Exit, r.Error.Detail)
	}
	fmt.Fprintf(w, "moonpath %s, process %d, engine %s, %s, from %s for %v: %s\n", r.Command, r.PID, r.Engine, r.Version,
		r.Began.Local().Format(time.DateTime), brief(r.Ended.Sub(r.Began)), how)
	if r.Dropped > 0 {
		fmt.Fprintf(w, "%s not shown\n", plural(r.Dropped, "older event"))
	}
	if len(r.Events) == 0 {
		fmt.Fprintln(w, "no decision, route or failure was recorded")
	}
	for _, e := range r.Events {
		e.text(w)
	}
	for _, s := range r.Counters {
		fmt.Fprintf(w, "counter\t%s\t%d\n", pathName(s.Path, s.Name), s.Value)
	}
}

func (e *eventView) text(w io.Writer) {
	times := ""
	if e.Times > 1 {
		times = fmt.Sprintf(" (%d times, the last at %s)", e.Times, e.Last.Local().Format(timeOfDay))
	}
	fmt.Fprintf(w, "%s\t%s\t%s%s\n", e.When.Local().Format(timeOfDay), e.Kind+" "+e.Subject, e.summary(), times)
	if e.Decision != nil {
		decisionText(w, e.Decision, "  ")
	}
}

const timeOfDay = "15:04:05.000"

func (e *eventView) summary() string {
	switch {
	case e.Fault != nil:
		return fmt.Sprintf("%s: %s (code %d, side: %s; next: %s)", e.Fault.Stage, e.Fault.Detail, e.Fault.Code, e.Fault.Side, e.Fault.Next)
	case e.Decision != nil && e.Decision.Path() == "":
		return e.Decision.Op + ": no usable path"
	case e.Decision != nil:
		return e.Decision.Op + " over " + e.Decision.Path()
	}
	return e.Text
}
