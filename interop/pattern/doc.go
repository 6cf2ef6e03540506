// Package pattern makes payload bytes from a seed.
//
// The Go side of an interop test and the C++ peer compute the same bytes on their own, so that 64 MiB are filled and
// compared without passing through a pipe, and a recorded payload is kept as its seed. A pattern never repeats within
// itself and two seeds share nothing, so bytes that land in the wrong place cannot pass for the right ones.
//
// The package holds no state and starts no goroutine.
package pattern
