package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/xfer"
)

// sizeFlag is a number of bytes, at least one.
type sizeFlag uint64

// UnmarshalText reads sizes such as 4096, 64KiB or 2GB.
func (s *sizeFlag) UnmarshalText(text []byte) error {
	n, err := config.ParseSize(string(text))
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("size %q: want at least 1 byte", text)
	}
	*s = sizeFlag(n)
	return nil
}

// addrFlag is an address in a peer's memory.
type addrFlag uint64

// UnmarshalText reads decimal numbers and hexadecimal ones that start with 0x.
func (a *addrFlag) UnmarshalText(text []byte) error {
	digits, base := string(text), 10
	if hexDigits, found := strings.CutPrefix(strings.ToLower(digits), "0x"); found {
		digits, base = hexDigits, 16
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if err != nil || n == 0 {
		return fmt.Errorf("address %q: want a number from 1 to 2^64-1, decimal or with 0x", text)
	}
	*a = addrFlag(n)
	return nil
}

// countFlag is a number of things, from 1 to 65536.
type countFlag int

const maxCount = 1 << 16

// UnmarshalText reads a whole number.
func (c *countFlag) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 32)
	if err != nil || n == 0 || n > maxCount {
		return fmt.Errorf("%q is not a whole number from 1 to %d", text, maxCount)
	}
	*c = countFlag(n)
	return nil
}

// spanFlag is a duration above zero and up to an hour.
type spanFlag time.Duration

const maxSpan = time.Hour

// UnmarshalText reads durations such as 500ms or 2s; a bare number counts seconds.
func (s *spanFlag) UnmarshalText(text []byte) error {
	d, err := config.ParseDuration(string(text), time.Second)
	if err != nil {
		return err
	}
	if d == 0 || d > maxSpan {
		return fmt.Errorf("duration %q: want more than zero and at most %v", text, maxSpan)
	}
	*s = spanFlag(d)
	return nil
}

// restFlag is a duration from zero up to an hour.
type restFlag time.Duration

// UnmarshalText reads what spanFlag reads, and 0.
func (r *restFlag) UnmarshalText(text []byte) error {
	d, err := config.ParseDuration(string(text), time.Second)
	if err != nil {
		return err
	}
	if d > maxSpan {
		return fmt.Errorf("duration %q: want at most %v", text, maxSpan)
	}
	*r = restFlag(d)
	return nil
}

// opFlag is a direction.
type opFlag xfer.Op

// UnmarshalText reads "read" or "write".
func (o *opFlag) UnmarshalText(text []byte) error {
	switch string(text) {
	case xfer.Read.String():
		*o = opFlag(xfer.Read)
	case xfer.Write.String():
		*o = opFlag(xfer.Write)
	default:
		return fmt.Errorf("operation %q: want read or write", text)
	}
	return nil
}

// portFlag is a port to bind; 0 lets the engine choose one.
type portFlag uint16

// UnmarshalText reads a number from 0 to 65535.
func (p *portFlag) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 16)
	if err != nil {
		return fmt.Errorf("port %q: want a number from 1 to 65535, or 0 for any free one", text)
	}
	*p = portFlag(n)
	return nil
}
