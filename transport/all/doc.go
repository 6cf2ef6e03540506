// Package all lists the transports of this build, and the protocol names that are known besides. It is a list
// and not a registry that packages add themselves to: the order is visible, and tests make their own.
//
// It holds no state and starts no goroutines.
package all
