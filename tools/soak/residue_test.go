package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Each kind of leftover is left once, and found.
func TestResidueFindsEachLeftover(t *testing.T) {
	for _, test := range []struct {
		name  string
		leave func(t *testing.T, folder string) (clean func())
		finds string
	}{
		{"goroutine", func(*testing.T, string) func() {
			end := make(chan struct{})
			for range 5 { // more than what earlier tests may still have to end
				go func() { <-end }()
			}
			return func() { close(end) }
		}, "goroutines"},
		{"file", func(t *testing.T, _ string) func() {
			f, err := os.Open("/dev/null")
			if err != nil {
				t.Fatal(err)
			}
			return func() { f.Close() }
		}, "open files: /dev/null"},
		{"socket", func(t *testing.T, _ string) func() {
			fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
			if err != nil {
				t.Fatal(err)
			}
			return func() { syscall.Close(fd) }
		}, "open files: socket"},
		{"mapping", func(t *testing.T, _ string) func() {
			m, err := syscall.Mmap(-1, 0, 8*mappedSlack, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			if err != nil {
				t.Fatal(err)
			}
			return func() { syscall.Munmap(m) }
		}, "MiB of mapped memory"},
		{"child", func(t *testing.T, _ string) func() {
			cmd := exec.Command("cat")
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			return func() { stdin.Close(); cmd.Wait() }
		}, "child processes"},
		{"temporary file", func(t *testing.T, folder string) func() {
			path := filepath.Join(folder, "x")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return func() { os.Remove(path) }
		}, "temporary files: x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			take := func() residue {
				r, err := takeResidue(folder)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			before := take()
			if left := take().left(before); len(left) > 0 {
				t.Errorf("left before anything was done: %q", left)
			}
			clean := test.leave(t, folder)
			if left := strings.Join(take().left(before), "\n"); !strings.Contains(left, test.finds) {
				t.Errorf("found %q, want %q", left, test.finds)
			}
			clean()
		})
	}
}

func TestAnonymousLeavesOutFilesAndTheHeap(t *testing.T) {
	const maps = `00400000-00500000 r-xp 00000000 08:01 77 /bin/x
008c0000-008d0000 rw-p 00000000 00:00 0
35cf9d000000-35cf9e000000 rw-p 00000000 00:00 0
7f2efd000000-7f2efd100000 rw-p 00000000 00:00 0
7f2efe000000-7f2efe100000 rw-s 00000000 00:01 88 /dev/shm/x
7f2eff000000-7f2eff100000 ---p 00000000 00:00 0
`
	if got := anonymous([]byte(maps), 0x35cf9d123456); got != 0x110000 {
		t.Errorf("%#x bytes, want 0x110000", got)
	}
}

func TestHeapIsFound(t *testing.T) {
	const size = 64 << 20
	big := make([]byte, size)
	fill(big, 1)
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	if all, outside := anonymous(maps, 1<<63), anonymous(maps, onHeap()); all < outside+size {
		t.Errorf("%d MiB are mapped, and %d of them outside of a heap that has %d", all>>20, outside>>20, len(big)>>20)
	}
	runtime.KeepAlive(big)
}
