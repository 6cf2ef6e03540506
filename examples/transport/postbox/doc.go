// Package postbox is a whole transport in two short files, as somebody outside this repository might write one. Engines
// of one process hand each other letters: each names a chunk, and the target's clerk carries it out.
//
// It implements transport.Transport and passes transporttest; docs/how-to/write-a-transport.md goes through it. It is
// an example and is in no list of transports: package transport/local does the same without the letters.
//
// Invariants: a chunk is in one hand at a time, the route's or the clerk's; a clerk has answered every letter that it
// took before it leaves; an answer always finds room.
//
// Goroutines: one clerk per transport, ended by Close; one carrier per route, ended by Quiesce.
package postbox
