// Package segjson encodes and decodes segment descriptors: the JSON by which an
// engine tells its peers where its data port is and which buffers they may use.
//
// The classic keys are Mooncake's; docs/reference/wire describes them. What
// moonpath adds is one object, key "moonpath", which published readers ignore;
// docs/reference/wire-extension.md defines it. metadata/p2p sends descriptors
// in control frames, metadata services store them, and package segment turns
// them into what the engine works with.
//
// Append writes byte for byte what published engines write, plus the moonpath
// object. Parse accepts what they accept, with two differences: what ends a C++
// process is an error here, and so is what it silently changes, such as a port
// above 65535. One bad buffer refuses the whole descriptor, as it does there.
//
// Invariants: both directions take linear time. Parse never yields a zero
// address, a zero length or a range that wraps. A moonpath object that is
// malformed or too new costs the extension, never the descriptor.
//
// The package starts no goroutine and keeps no state.
package segjson
