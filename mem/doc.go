// Package mem knows the memory that transfers may touch: the table of registrations, leases on them, and
// memory outside the Go heap.
//
// It sits below the transports. They and the engine name memory by number (xfer.Addr); this package alone
// turns a number into a pointer, once, when the memory is registered, and hands out byte slices from then on.
//
// Invariants: registrations are disjoint; a region found by Acquire stays usable until its lease is given
// back, because Close waits for all leases; a published version of the table never changes. Memory whose
// address was registered must stay mapped until Unregister has returned; if it does not, copies made by
// Copy end with an error instead of a crash, and system calls with EFAULT.
//
// The package starts no goroutines.
package mem
