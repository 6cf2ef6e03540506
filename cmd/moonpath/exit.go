package main

import (
	"errors"
	"strconv"

	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/xfer"
)

// Exit codes. They are part of the interface: docs/reference/cli.md promises them to scripts.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitNoTransport = 4
	exitRefused     = 5
	exitInterrupted = 130
)

type exitCode struct {
	code    int
	meaning string
}

func (e exitCode) label() string {
	text := strconv.Itoa(e.code)
	return "   "[:max(3-len(text), 0)] + text
}

// exitCodes is the list that the help prints.
var exitCodes = []exitCode{
	{exitOK, "success"},
	{exitFailed, "a transfer or its verification failed, or this host could not do what was asked"},
	{exitUsage, "the command line, a setting or a file name is wrong"},
	{exitUnreachable, "the peer does not answer, or has no such segment"},
	{exitNoTransport, "no usable transport: moonpath info and moonpath explain say why"},
	{exitRefused, "the address or range is refused, by the peer or because it is not registered"},
	{exitInterrupted, "interrupted by SIGINT or SIGTERM"},
}

// exitOf returns the exit code for an error that is not nil.
func exitOf(err error) int {
	var own *toolError
	if errors.As(err, &own) {
		return own.exit
	}
	var badValue *config.BadValue
	var unknownKey *config.UnknownKey
	if errors.As(err, &badValue) || errors.As(err, &unknownKey) {
		return exitUsage
	}
	var fault *xfer.Fault
	if !errors.As(err, &fault) {
		return exitFailed
	}
	return exitOfFault(fault)
}

func exitOfFault(f *xfer.Fault) int {
	switch f.Code {
	case xfer.InvalidArgument:
		return exitUsage
	case xfer.DNS, xfer.Metadata, xfer.MalformedJSON, xfer.RejectHandshake, xfer.WrongPeer, xfer.Endpoint:
		return exitUnreachable
	case xfer.NotSupportedTransport, xfer.DeviceNotFound, xfer.NotImplemented:
		return exitNoTransport
	case xfer.Refused, xfer.AddressNotRegistered:
		return exitRefused
	case xfer.Socket, xfer.Deadline, xfer.BadProtocol, xfer.Interrupted:
		if beforeTransfer(f.Stage) {
			return exitUnreachable
		}
	}
	return exitFailed
}

// beforeTransfer reports whether the peer was never reached, as opposed to lost during a transfer.
func beforeTransfer(s xfer.Stage) bool {
	return s == xfer.StageResolve || s == xfer.StageDial || s == xfer.StageControl
}
