package main

import (
	"encoding"
	"strings"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/xfer"
)

func TestFlagValues(t *testing.T) {
	var (
		size  sizeFlag
		addr  addrFlag
		count countFlag
		span  spanFlag
		op    opFlag
		port  portFlag
	)
	for _, c := range []struct {
		flag encoding.TextUnmarshaler
		text string
		got  func() uint64
		want uint64
	}{
		{&size, "1", func() uint64 { return uint64(size) }, 1},
		{&size, "64KiB", func() uint64 { return uint64(size) }, 65536},
		{&size, "2GB", func() uint64 { return uint64(size) }, 2e9},
		{&addr, "4096", func() uint64 { return uint64(addr) }, 4096},
		{&addr, "0x7fFF", func() uint64 { return uint64(addr) }, 0x7fff},
		{&addr, "0Xffffffffffffffff", func() uint64 { return uint64(addr) }, 1<<64 - 1},
		{&count, "1", func() uint64 { return uint64(count) }, 1},
		{&count, "65536", func() uint64 { return uint64(count) }, 65536},
		{&span, "500ms", func() uint64 { return uint64(span) }, uint64(500 * time.Millisecond)},
		{&span, "2", func() uint64 { return uint64(span) }, uint64(2 * time.Second)},
		{&span, "1h", func() uint64 { return uint64(span) }, uint64(time.Hour)},
		{&op, "read", func() uint64 { return uint64(op) }, uint64(xfer.Read)},
		{&op, "write", func() uint64 { return uint64(op) }, uint64(xfer.Write)},
		{&port, "0", func() uint64 { return uint64(port) }, 0},
		{&port, "65535", func() uint64 { return uint64(port) }, 65535},
	} {
		if err := c.flag.UnmarshalText([]byte(c.text)); err != nil {
			t.Errorf("%T %q: %v", c.flag, c.text, err)
		} else if got := c.got(); got != c.want {
			t.Errorf("%T %q = %d, want %d", c.flag, c.text, got, c.want)
		}
	}
}

func TestWrongFlagValuesSayWhatIsWanted(t *testing.T) {
	for _, c := range []struct {
		flag   encoding.TextUnmarshaler
		texts  []string
		advice string
	}{
		{new(sizeFlag), []string{"", "-1", "64K", "1.5GiB", "x", "9EiB", "99999999999999999999"}, "such as 64KiB"},
		{new(sizeFlag), []string{"0", "0GiB"}, "at least 1 byte"},
		{new(addrFlag), []string{"", "0", "-1", "0x", "0x0", "7f00", "0x10000000000000000", "1KiB"}, "decimal or with 0x"},
		{new(countFlag), []string{"", "0", "-1", "65537", "1e3", "4294967297", "many"}, "whole number from 1 to 65536"},
		{new(spanFlag), []string{"0", "0s", "61m", "1000000h"}, "at most 1h0m0s"},
		{new(spanFlag), []string{"", "-1s", "fast"}, "such as 500ms"},
		{new(opFlag), []string{"", "Read", "rw"}, "want read or write"},
		{new(portFlag), []string{"", "-1", "65536", "http"}, "from 1 to 65535"},
	} {
		for _, text := range c.texts {
			err := c.flag.UnmarshalText([]byte(text))
			if err == nil {
				t.Errorf("%T accepts %q", c.flag, text)
			} else if !strings.Contains(err.Error(), c.advice) {
				t.Errorf("%T %q: %q does not say %q", c.flag, text, err, c.advice)
			}
		}
	}
}
