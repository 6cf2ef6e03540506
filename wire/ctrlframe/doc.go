// Package ctrlframe encodes and decodes the frames of the control port, on
// which peers exchange descriptors, notifications, probes and connection
// messages: one request and one reply per TCP connection.
//
// A frame is an 8-byte little-endian length, one type byte, and JSON. Frames of
// the old protocol have no type byte; a reader tells them apart by their first
// byte and answers in the same form. docs/reference/wire describes both.
// Package handshake encodes and decodes the bodies.
//
// Read refuses what published engines refuse, and in addition what ends their
// process: an old-protocol body that is no object.
//
// Invariants: a length is compared with the limit before anything is allocated,
// and memory then grows with the bytes that really arrive. A body that Read
// returned starts with a valid JSON value. Append yields one piece of memory,
// so that a frame goes out in one write.
//
// The package starts no goroutine. Read takes bytes of its own frame only and
// sets no deadline; the caller has to set one on the connection.
package ctrlframe
