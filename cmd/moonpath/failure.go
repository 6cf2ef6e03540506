package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/xfer"
)

// toolError is a failure that the tool itself finds: a wrong command line, a file, bytes that differ.
type toolError struct {
	exit   int
	code   xfer.Code // 0 where no code of the engine fits
	name   string    // for scripts; "" means the code's name
	stage  xfer.Stage
	peer   string
	path   string
	errno  int       // 0 means that the cause says
	side   xfer.Side // "" means that cause or code say
	detail string
	next   string
	cause  error
}

// Error returns one line that ends with the next step.
func (e *toolError) Error() string {
	text := e.detail
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text + " (next: " + e.next + ")"
}

// Unwrap returns the error underneath, or nil.
func (e *toolError) Unwrap() error { return e.cause }

// usage is a command line that cannot work; command is the one whose help explains it.
func usage(command, format string, args ...any) error {
	return &toolError{
		exit: exitUsage, code: xfer.InvalidArgument, stage: xfer.StageArgument,
		detail: fmt.Sprintf(format, args...),
		next:   "run moonpath " + strings.TrimLeft(command+" --help", " "),
	}
}

// usageError turns what the parser says into the form of all other errors.
func usageError(err error) error {
	var own *toolError
	if errors.As(err, &own) {
		return own
	}
	command := ""
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		if node := parse.Context.Selected(); node != nil {
			command = node.Name
		}
	}
	return usage(command, "%s", err)
}

// fileError is a failure of a file that the command line names.
func fileError(exit int, path string, err error) error {
	return &toolError{
		exit: exit, name: "File", stage: "file", detail: "file " + path, cause: err,
		next: "check the path, its permissions and the free space",
	}
}

// root returns the fault that err begins with, or nil. Where one fault is the cause of another both describe the same
// failure, the inner one closer to it, and printing both would give the next step twice.
func root(err error) *xfer.Fault {
	var f *xfer.Fault
	for {
		var inner *xfer.Fault
		if !errors.As(err, &inner) {
			return f
		}
		f, err = inner, inner.Cause
	}
}

// failure is an error as scripts see it.
type failure struct {
	Exit   int    `json:"exit"`
	Code   int    `json:"code"`
	Name   string `json:"name"`
	Stage  string `json:"stage"`
	Path   string `json:"path"`
	Peer   string `json:"peer"`
	Errno  int    `json:"errno"` // of the system; 0 where none is underneath
	Side   string `json:"side"`  // who has to change something
	Remote string `json:"remote"`
	Detail string `json:"detail"`
	Next   string `json:"next"`
}

// describe takes err apart. The detail of a fault says what went wrong in full, without the next step, which has
// its own field.
func describe(err error) failure {
	var own *toolError
	fault := root(err)
	switch {
	case errors.As(err, &own):
		f := failure{
			Exit: own.exit, Code: int(own.code), Name: own.name, Stage: string(own.stage), Path: own.path, Peer: own.peer,
			Errno: cmp.Or(own.errno, int(xfer.ErrnoOf(err))), Side: string(own.sideToChange()), Remote: remote(fault), Detail: own.detail, Next: own.next,
		}
		if own.cause != nil {
			f.Detail += ": " + own.cause.Error()
		}
		if f.Name == "" {
			f.Name = own.code.Name()
		}
		return f
	case fault != nil:
		return failure{
			Exit: exitOf(err), Code: int(fault.Code), Name: fault.Code.Name(), Stage: string(fault.Stage),
			Path: fault.Path, Peer: fault.Peer, Errno: int(xfer.ErrnoOf(err)), Side: string(fault.MustChange()), Remote: remote(fault), Detail: faultDetail(fault), Next: fault.NextStep(),
		}
	}
	f := failure{Exit: exitOf(err), Name: "Unknown", Errno: int(xfer.ErrnoOf(err)), Side: string(xfer.SideHere), Remote: remote(nil), Detail: err.Error(), Next: nextStep(err)}
	if f.Exit == exitUsage {
		f.Code, f.Name, f.Stage, f.Side = int(xfer.InvalidArgument), xfer.InvalidArgument.Name(), string(xfer.StageArgument), string(xfer.SideCaller)
	}
	return f
}

// sideToChange is that of the code; files and signals are the caller's.
func (e *toolError) sideToChange() xfer.Side {
	var fault *xfer.Fault
	switch {
	case errors.As(e.cause, &fault):
		return fault.MustChange()
	case e.side != "":
		return e.side
	case e.code != 0:
		return e.code.Side()
	}
	return xfer.SideCaller
}

func remote(f *xfer.Fault) string {
	if f == nil {
		return xfer.Confirmed.String()
	}
	return f.Remote.String()
}

func faultDetail(f *xfer.Fault) string {
	parts := []string{f.Code.Error()}
	if f.Detail != "" {
		parts = append(parts, f.Detail)
	}
	if f.Cause != nil {
		parts = append(parts, f.Cause.Error())
	}
	return strings.Join(parts, ": ")
}

// nextStep advises on an error that carries no advice of its own.
func nextStep(err error) string {
	var badValue *config.BadValue
	var unknownKey *config.UnknownKey
	if errors.As(err, &badValue) || errors.As(err, &unknownKey) {
		return "run moonpath info to see every setting and what it accepts"
	}
	return "run again with --log-level TRACE to see more"
}

// line is the error as people see it, ending with the next step.
func line(err error) string {
	var own *toolError
	if errors.As(err, &own) {
		return err.Error()
	}
	if fault := root(err); fault != nil {
		return fault.Error()
	}
	return err.Error() + " (next: " + nextStep(err) + ")"
}

// fail prints err and returns the exit code.
func (a *app) fail(err error) int {
	if a.ctx.Err() != nil {
		err = interrupted(err)
	}
	f := describe(err)
	if a.common.JSON {
		writeJSON(a.stderr, map[string]failure{"error": f})
	} else {
		fmt.Fprintln(a.stderr, "moonpath: "+line(err))
	}
	return f.Exit
}

// interrupted is what a command ends with after a signal: err says what was given up.
func interrupted(err error) error {
	f := describe(err)
	return &toolError{
		exit: exitInterrupted, code: xfer.Interrupted, stage: xfer.Stage(f.Stage), peer: f.Peer,
		detail: "interrupted by a signal, and given up: " + f.Detail, next: "run the command again",
	}
}
