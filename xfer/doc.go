// Package xfer is the vocabulary of a transfer: requests, states, handles, codes and faults.
//
// Every other package speaks in these words, and the facade re-exports them. The package holds values
// only: no I/O, no goroutines, no state, and no import outside the standard library.
//
// Numbers that Mooncake's API exposes (operation, status, error code) have Mooncake's values, so that a
// caller who compares them with what the C++ engine returned sees the same thing.
package xfer
