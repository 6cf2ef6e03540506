// Package p2p finds peers without a metadata service: every engine answers on a control port, and the
// name of a segment is that port's address.
//
// A Node is the engine's own port and its way to the ports of others. It implements segment.Directory,
// and carries notifications and probes, which use the same port. One connection carries one request and
// its reply (wire spec, section 3); package ctrlframe has the frames, handshake and segjson the bodies.
//
// The port answers anybody, so a connection is served only within bounds: 512 open ones, of which 64 may
// send large requests; 2 s for each MiB of a request or a reply, and 2 s for the peer to close. At a
// bound, whoever comes next takes the place of the connection whose peer has kept the port waiting
// longest. Whatever is no request ends its own connection without an answer, and nothing else.
//
// Invariants: Listen returns a bound port, so that a name is never published before it is served. A
// published description is made and encoded when a peer first asks for it, once, so that publishing costs the
// same for any number of buffers. A reply leaves in one write. Every error is an *xfer.Fault.
//
// Goroutines: one that accepts and one for each open connection, from Listen until Close returns. Calls to
// peers run in the caller's goroutine.
package p2p
