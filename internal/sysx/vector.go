package sysx

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Vec describes b, which must not be empty, as an entry of a vector. The memory must stay reachable and
// mapped until the call that uses the vector has returned.
func Vec(b []byte) unix.Iovec {
	v := unix.Iovec{Base: unsafe.SliceData(b)}
	v.SetLen(len(b))
	return v
}

// Advance drops the first n bytes of a vector; n is at most its length in all. The first entry left is
// shortened in place.
func Advance(vs []unix.Iovec, n int) []unix.Iovec {
	for len(vs) > 0 && n >= int(vs[0].Len) {
		n -= int(vs[0].Len)
		vs = vs[1:]
	}
	if n > 0 {
		vs[0].Base = (*byte)(unsafe.Add(unsafe.Pointer(vs[0].Base), n))
		vs[0].Len -= uint64(n)
	}
	return vs
}

// MaxVectors is the most entries that one call takes (IOV_MAX).
const MaxVectors = 1024

// Extend lengthens an entry by n bytes if it ends with the memory of last, and reports whether it did. The n
// bytes behind last belong to the same allocation.
func Extend(v *unix.Iovec, last []byte, n int) bool {
	// Numbers, not pointers: one past the end of a buffer on the Go heap is a pointer into something else.
	end := uintptr(unsafe.Pointer(v.Base)) + uintptr(v.Len)
	if end != uintptr(unsafe.Pointer(unsafe.SliceData(last)))+uintptr(len(last)) {
		return false
	}
	v.Len += uint64(n)
	return true
}

// Bytes returns the memory of an entry.
func Bytes(v unix.Iovec) []byte { return unsafe.Slice(v.Base, int(v.Len)) }
