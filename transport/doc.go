// Package transport is the contract between the engine and its data paths; the implementations live in
// sub-folders and never import each other.
//
// The engine (package multi) owns tasks and queues. For every peer and transport there is one Route with
// one Source. The takers of a route (its lanes, workers or copiers) pull chunks out of the source when
// they have room, move them, and give each back exactly once through Source.Done. Nothing is pushed, so
// load spreads over lanes by itself and a full transport needs no callback.
//
// Invariants of every implementation: a chunk has one owner, from Take to Done; when Done is called the
// chunk's local memory is quiet; Kick never waits for a peer; what a system or device call may still touch
// after it returned is neither on the Go heap nor given back.
//
// The package holds interfaces and values only and starts no goroutines.
package transport
