package main

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// sink is the file that read puts bytes into: a new file that gets its name when it is complete. Standard output,
// devices and pipes are written as they are.
type sink struct {
	out   io.Writer
	name  string
	file  *os.File // to be closed; nil for standard output
	temp  string   // name until commit; "" where the file is written in place
	final string
}

func (a *app) openSink(path string) (*sink, error) {
	if path == "-" {
		return &sink{out: a.stdout, name: "standard output"}, nil
	}
	if path == "" {
		return nil, fileError(exitUsage, `""`, fs.ErrNotExist)
	}
	s := &sink{name: path, final: path}
	mode := fs.FileMode(0o666)
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return s.open(path, os.O_WRONLY, 0)
	case err == nil:
		mode = info.Mode().Perm()
		if s.final, err = filepath.EvalSymlinks(path); err != nil {
			return nil, fileError(exitUsage, path, err)
		}
	}
	s.temp = filepath.Join(filepath.Dir(s.final), ".moonpath-"+rand.Text())
	return s.open(s.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
}

func (s *sink) open(path string, flags int, mode fs.FileMode) (*sink, error) {
	f, err := os.OpenFile(path, flags, mode)
	if err != nil {
		return nil, fileError(exitUsage, s.name, errors.Unwrap(err))
	}
	s.file, s.out = f, f
	return s, nil
}

// Write writes all of b or fails.
func (s *sink) Write(b []byte) (int, error) {
	n, err := s.out.Write(b)
	if err != nil {
		return n, fileError(exitFailed, s.name, err)
	}
	return n, nil
}

// commit gives the complete file its name.
func (s *sink) commit() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	if err == nil && s.temp != "" {
		err = os.Rename(s.temp, s.final)
	}
	if err != nil {
		s.remove()
		return fileError(exitFailed, s.name, err)
	}
	s.temp = ""
	return nil
}

// discard removes what has no name yet; after commit it does nothing.
func (s *sink) discard() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
	s.remove()
}

func (s *sink) remove() {
	if s.temp != "" {
		os.Remove(s.temp)
		s.temp = ""
	}
}
