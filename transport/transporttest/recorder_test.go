package transporttest

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// recorder takes the place of a test, and remembers what became of it.
type recorder struct {
	testing.TB
	mu      sync.Mutex
	failed  bool
	skipped bool
	log     string
}

func (r *recorder) note(failed, skipped bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed, r.skipped = r.failed || failed, r.skipped || skipped
	r.log += text
}

func (r *recorder) Error(args ...any) { r.note(true, false, fmt.Sprintln(args...)) }
func (r *recorder) Errorf(format string, args ...any) {
	r.note(true, false, fmt.Sprintf(format+"\n", args...))
}
func (r *recorder) Fatal(args ...any)                 { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); runtime.Goexit() }
func (r *recorder) Skip(args ...any)                  { r.note(false, true, fmt.Sprintln(args...)); runtime.Goexit() }
func (r *recorder) Skipf(format string, args ...any)  { r.Skip(fmt.Sprintf(format, args...)) }

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}
