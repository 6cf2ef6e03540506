// Package handshake encodes and decodes the bodies of control messages, apart
// from descriptors, which are segjson's.
//
// The functions cover what an engine without RDMA says and hears: the requests
// for metadata and probe, notifications with their reply, and the reply to a
// connection message, which such an engine gives without looking at the request.
// docs/reference/wire describes the messages; package ctrlframe carries them.
//
// Encoders append what published engines send, byte for byte. ParseNotify takes
// what they take, and answers with an error what ends their process.
//
// The package starts no goroutine and keeps no state.
package handshake
