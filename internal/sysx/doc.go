// Package sysx wraps the system calls of the data path: vectored reads and writes on non-blocking sockets
// that park in the runtime's poller, not in a thread.
//
// It exists to keep unsafe pointers in one place and to make the calls without allocation: the closures that
// the poller needs are made once per stream. It holds no policy and starts no goroutines.
package sysx
