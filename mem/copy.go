package mem

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"syscall"
)

// ErrUnmapped is the cause of a copy that touched memory which is registered but no longer mapped.
var ErrUnmapped = errors.New("memory is registered but not mapped")

// ExpectFaults lets Copy report unmapped memory as an error in the calling goroutine, and returns what
// undoes it. A goroutine that copies user memory all its life need not call that.
func ExpectFaults() (restore func()) {
	if debug.SetPanicOnFault(true) {
		return func() {}
	}
	return func() { debug.SetPanicOnFault(false) } // captures nothing, so that it costs no allocation
}

// Copy copies min(len(dst), len(src)) bytes and returns their number. In a goroutine that called
// ExpectFaults, touching an unmapped page gives ErrUnmapped (wrapping EFAULT) instead of ending the process.
//
// The race detector does not look at it: what a peer moves is ordered by the peer's requests and answers,
// which pass through sockets, and the kernel's copies are invisible to the detector, too.
//
//go:norace
func Copy(dst, src []byte) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, fault := r.(runtime.Error); !fault {
				panic(r)
			}
			n, err = 0, fmt.Errorf("%w: %w", ErrUnmapped, syscall.EFAULT)
		}
	}()
	return copy(dst, src), nil
}
