package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"
)

// residue is what a process has that it could leave behind.
type residue struct {
	goroutines int
	files      []string // what each descriptor is; numbers of sockets and pipes left off
	mapped     uint64   // bytes of writable anonymous memory that is not Go's heap
	threads    int      // of the system, of which Go keeps those that it once needed
	children   []string
	temporary  []string
}

// takeResidue looks at this process and at the folder for temporary files.
func takeResidue(folder string) (residue, error) {
	r := residue{goroutines: runtime.NumGoroutine()}
	var err error
	if r.files, err = openFiles(); err != nil {
		return r, err
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return r, err
	}
	r.mapped = anonymous(maps, onHeap())
	if r.children, r.threads, err = childProcesses(); err != nil {
		return r, err
	}
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		r.temporary = append(r.temporary, e.Name())
	}
	return r, err
}

func openFiles() ([]string, error) {
	const folder = "/proc/self/fd"
	entries, err := os.ReadDir(folder)
	var files []string
	for _, e := range entries {
		name, err := os.Readlink(filepath.Join(folder, e.Name()))
		if err != nil {
			continue // the descriptor of the folder itself
		}
		kind, _, _ := strings.Cut(name, ":[")
		files = append(files, kind)
	}
	return files, err
}

// heapReach is how far Go's heap may extend from any object in it. Where it begins is drawn by lot; memory of the engine is
// mapped elsewhere.
const heapReach = 8 << 30

// onHeap returns the address of some object on Go's heap.
func onHeap() uint64 {
	addr, err := strconv.ParseUint(fmt.Sprintf("%p", new([64]byte)), 0, 64)
	if err != nil {
		panic(err) // %p prints a number that starts with 0x
	}
	return addr
}

// anonymous adds up lines of /proc/PID/maps such as "7f0000-7f9000 rw-p 00000000 00:00 0", but not those around heap.
func anonymous(maps []byte, heap uint64) (total uint64) {
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 || !strings.HasPrefix(fields[1], "rw") || fields[4] != "0" {
			continue
		}
		low, high, _ := strings.Cut(fields[0], "-")
		from, err1 := strconv.ParseUint(low, 16, 64)
		to, err2 := strconv.ParseUint(high, 16, 64)
		if err1 == nil && err2 == nil && max(from, heap)-min(from, heap) > heapReach {
			total += to - from
		}
	}
	return total
}

// childProcesses returns the children of all threads, and how many threads there are.
func childProcesses() (children []string, threads int, err error) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		children = append(children, strings.Fields(string(text))...)
	}
	return children, len(lists), err
}

// mappedSlack is what Go itself may map for its own bookkeeping while it runs; less than the memory of one worker.
const mappedSlack = 16 << 20

// threadStack is what a thread has mapped in a build with cgo.
const threadStack = 9 << 20

// left says what r has more than before had.
func (r residue) left(before residue) []string {
	var left []string
	if r.goroutines > before.goroutines {
		left = append(left, fmt.Sprintf("%d goroutines, %d before", r.goroutines, before.goroutines))
	}
	rest := slices.Clone(r.files)
	for _, f := range before.files {
		if i := slices.Index(rest, f); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		}
	}
	if len(rest) > 0 {
		left = append(left, fmt.Sprintf("%d open files: %s", len(rest), strings.Join(rest, " ")))
	}
	stacks := uint64(max(r.threads-before.threads, 0)) * threadStack
	if r.mapped > before.mapped+mappedSlack+stacks {
		left = append(left, fmt.Sprintf("%d MiB of mapped memory", (r.mapped-before.mapped)>>20))
	}
	if len(r.children) > len(before.children) {
		left = append(left, "child processes: "+strings.Join(r.children, " "))
	}
	if len(r.temporary) > len(before.temporary) {
		left = append(left, "temporary files: "+strings.Join(r.temporary, " "))
	}
	return left
}

// settleLimit is how long what is ending may take to be gone.
const settleLimit = 10 * time.Second

// settle looks again and again until nothing is left, or tells what is left after the limit.
func settle(folder string, before residue) ([]string, error) {
	deadline := time.Now().Add(settleLimit)
	for {
		debug.FreeOSMemory()
		now, err := takeResidue(folder)
		if err != nil {
			return nil, err
		}
		left := now.left(before)
		if len(left) == 0 || time.Now().After(deadline) {
			if now.goroutines > before.goroutines {
				var stacks bytes.Buffer
				_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
				left = append(left, stacks.String())
			}
			return left, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}
