package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakePath makes PATH one folder with the given scripts.
func fakePath(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

func TestNeedCompilerFetchesGccOrSaysWhyNot(t *testing.T) {
	const ask = "only root can fetch it: apt-get install gcc libc6-dev"
	asRoot := func(why string) string {
		if os.Geteuid() != 0 {
			return ask
		}
		return why
	}
	tests := []struct {
		name    string
		scripts map[string]string
		why     string // a part of the answer; empty wants an empty answer
	}{
		{"it is there", map[string]string{"gcc": ""}, ""},
		{"no apt-get", nil, "no apt-get to fetch it with"},
		{"apt-get works", map[string]string{"apt-get": "exit 0"}, asRoot("")},
		{"apt-get fails", map[string]string{"apt-get": "exit 100"}, asRoot("apt-get update failed: exit status 100")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fakePath(t, tt.scripts)
			var out strings.Builder
			why := needCompiler(context.Background(), &out, &out)
			if (why == "") != (tt.why == "") || !strings.Contains(why, tt.why) {
				t.Errorf("the answer is %q, want %q in it\n%s", why, tt.why, &out)
			}
		})
	}
}
