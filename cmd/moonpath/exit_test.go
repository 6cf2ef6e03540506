package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"testing"

	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/xfer"
)

func TestExitCodes(t *testing.T) {
	fault := func(c xfer.Code, s xfer.Stage) error { return &xfer.Fault{Code: c, Stage: s} }
	for _, c := range []struct {
		err  error
		want int
	}{
		{usage("bench", "no"), exitUsage},
		{fileError(exitUsage, "f", fs.ErrNotExist), exitUsage},
		{fileError(exitFailed, "f", io.ErrShortWrite), exitFailed},
		{&config.BadValue{Key: "k"}, exitUsage},
		{fmt.Errorf("opening: %w", errors.Join(&config.UnknownKey{Key: "k"})), exitUsage},
		{errors.New("anything"), exitFailed},
		{fault(xfer.InvalidArgument, xfer.StageArgument), exitUsage},
		{fault(xfer.Metadata, xfer.StageResolve), exitUnreachable},
		{fault(xfer.DNS, xfer.StageResolve), exitUnreachable},
		{fault(xfer.MalformedJSON, xfer.StageResolve), exitUnreachable},
		{fault(xfer.WrongPeer, xfer.StageDial), exitUnreachable},
		{fault(xfer.Socket, xfer.StageDial), exitUnreachable},
		{fault(xfer.Socket, xfer.StageControl), exitUnreachable},
		{fault(xfer.Socket, xfer.StageSend), exitFailed},
		{fault(xfer.Deadline, xfer.StageResolve), exitUnreachable},
		{fault(xfer.Deadline, xfer.StageComplete), exitFailed},
		{fault(xfer.BadProtocol, xfer.StageComplete), exitFailed},
		{fault(xfer.NotSupportedTransport, xfer.StageSelect), exitNoTransport},
		{fault(xfer.DeviceNotFound, xfer.StageSelect), exitNoTransport},
		{fault(xfer.Refused, xfer.StageComplete), exitRefused},
		{fault(xfer.AddressNotRegistered, xfer.StageArgument), exitRefused},
		{fault(xfer.Memory, xfer.StageRegister), exitFailed},
		{fmt.Errorf("wrapped: %w", fault(xfer.Refused, xfer.StageSend)), exitRefused},
	} {
		if got := exitOf(c.err); got != c.want {
			t.Errorf("%v (%T): exit %d, want %d", c.err, c.err, got, c.want)
		}
	}
}

// TestEveryCodeOfTheEngineExitsAsDocumented catches a code that is added without a thought about scripts.
func TestEveryCodeOfTheEngineExitsAsDocumented(t *testing.T) {
	documented := func(code int) bool {
		return slices.ContainsFunc(exitCodes, func(e exitCode) bool { return e.code == code })
	}
	for _, c := range xfer.Codes() {
		for _, s := range []xfer.Stage{xfer.StageArgument, xfer.StageDial, xfer.StageComplete} {
			if got := exitOf(&xfer.Fault{Code: c, Stage: s}); got == exitOK || !documented(got) {
				t.Errorf("%s at stage %s exits with %d", c.Name(), s, got)
			}
		}
	}
}
