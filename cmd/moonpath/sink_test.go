package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func openTestSink(t *testing.T, path string) *sink {
	t.Helper()
	s, err := new(app).openSink(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	return s
}

func wantContent(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", filepath.Base(path), got, err, want)
	}
}

func wantAlone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(path) {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

func TestFileAppearsWhenComplete(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	s := openTestSink(t, path)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there before it is complete: %v", err)
	}
	if err := s.commit(); err != nil {
		t.Fatal(err)
	}
	s.discard()
	wantContent(t, path, "new")
	wantAlone(t, path)
}

func TestFailedReadLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	openTestSink(t, path).discard()
	wantContent(t, path, "old")
	wantAlone(t, path)
}

func TestReplacedFileKeepsItsModeAndItsLink(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "out"), filepath.Join(t.TempDir(), "link")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := openTestSink(t, link).commit(); err != nil {
		t.Fatal(err)
	}
	wantContent(t, path, "new")
	wantAlone(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v; want 0640", info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info.Mode(), err)
	}
}

func TestUnusablePathsAreUsageErrors(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "no", "such"), ""} {
		_, err := new(app).openSink(path)
		if err == nil || exitOf(err) != exitUsage {
			t.Errorf("%q: %v, want a usage error", path, err)
		}
	}
}
