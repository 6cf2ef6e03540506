// Package tcpframe encodes and decodes the fixed-size frames of the TCP data
// connection: request header, status, and moonpath's hello.
//
// A request is a 24-byte header, followed by the payload for a write. Version 2
// answers it with an 8-byte status, followed by the payload for a read; version
// 1 sends no status. The published layout is in docs/reference/wire; hello and
// the status codes above 1 are moonpath's own and are described, with the bytes
// that the tests compare against, in docs/reference/wire-extension.md.
//
// The package holds no connection and decides nothing: transport/tcp reads and
// writes the bytes, checks ranges, and chooses what to answer.
//
// Invariants: header and status functions allocate nothing and return no error,
// since every bit pattern is a header. All integers are little-endian. Reserved
// bytes are written as zero and ignored when read.
//
// The package starts no goroutine and keeps no state; all functions may be
// called concurrently.
package tcpframe
