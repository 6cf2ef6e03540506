package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// source is the file that write takes bytes from.
type source struct {
	file  *os.File
	name  string
	size  uint64
	sized bool // size is known
	ctx   context.Context
	owned bool // to be closed
}

func (a *app) openSource(path string) (*source, error) {
	s := &source{file: a.stdin, name: "standard input", ctx: a.ctx}
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fileError(exitUsage, path, errors.Unwrap(err))
		}
		s.file, s.name, s.owned = f, path, true
	}
	info, err := s.file.Stat()
	if err == nil && info.IsDir() {
		err = unix.EISDIR
	}
	if err != nil {
		s.close()
		return nil, fileError(exitUsage, s.name, err)
	}
	if s.owned && info.Mode().IsRegular() {
		s.size, s.sized = uint64(info.Size()), true
	}
	return s, nil
}

// pollMillis bounds how long a signal goes unnoticed while a pipe or a terminal has nothing to read.
const pollMillis = 100

// Read reads, and gives up when the command is interrupted: a pipe whose writer is silent must not hold it.
func (s *source) Read(b []byte) (int, error) {
	fds := []unix.PollFd{{Fd: int32(s.file.Fd()), Events: unix.POLLIN}}
	for {
		if err := s.ctx.Err(); err != nil {
			return 0, fmt.Errorf("reading was given up: %w", err)
		}
		n, err := unix.Poll(fds, pollMillis)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return 0, err
		}
		if n > 0 {
			return s.file.Read(b)
		}
	}
}

func (s *source) close() {
	if s.owned {
		s.file.Close()
	}
}
