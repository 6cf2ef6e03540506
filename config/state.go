package config

import (
	"errors"
	"path/filepath"
)

// ErrNoStateDir says that the environment names no place for what outlives a process.
var ErrNoStateDir = errors.New("neither XDG_STATE_HOME nor HOME is an absolute path")

// StateDir returns the folder in which the tool keeps what outlives a run: moonpath in $XDG_STATE_HOME, else in
// ~/.local/state. It need not exist. lookup is [LookupEnv] outside tests.
func StateDir(lookup func(name string) (string, bool)) (string, error) {
	if dir, _ := lookup("XDG_STATE_HOME"); filepath.IsAbs(dir) { // others are to be ignored, says its specification
		return filepath.Join(dir, "moonpath"), nil
	}
	if home, _ := lookup("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "moonpath"), nil
	}
	return "", ErrNoStateDir
}
