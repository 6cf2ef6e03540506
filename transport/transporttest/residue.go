package transporttest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// residue is what a transport may leave behind in the process.
type residue struct {
	goroutines map[string]string // by number, with their stacks
	files      map[string]string // by number, with what they are
}

func remains() residue { return residue{goroutines(), files()} }

// goroutines lists those of the whole process.
func goroutines() map[string]string {
	text := make([]byte, 64<<10)
	for {
		n := runtime.Stack(text, true)
		if n < len(text) {
			text = text[:n]
			break
		}
		text = make([]byte, 2*len(text))
	}
	all := make(map[string]string)
	for _, stack := range strings.Split(string(text), "\n\n") {
		head, _, _ := strings.Cut(stack, " [")
		all[head] = stack
	}
	return all
}

// files lists open descriptors. Those of the runtime's poller are left out, which opens them when it is first needed.
func files() map[string]string {
	const dir = "/proc/self/fd"
	all := make(map[string]string)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return all // without /proc nothing can be said
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err == nil && !strings.HasPrefix(to, "anon_inode:[event") && !strings.HasPrefix(to, "/proc/") {
			all[e.Name()+" "+to] = to
		}
	}
	return all
}

// beyond describes what was not there before.
func (r residue) beyond(before residue) string {
	var b strings.Builder
	for head, stack := range r.goroutines {
		if before.goroutines[head] == "" {
			b.WriteString(stack + "\n")
		}
	}
	for name := range r.files {
		if before.files[name] == "" {
			b.WriteString("descriptor " + name + "\n")
		}
	}
	return b.String()
}
