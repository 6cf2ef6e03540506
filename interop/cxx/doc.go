// Package cxx drives a real C++ Transfer Engine from a Go test.
//
// [Start] runs a Python process with the published engine inside and returns a [Peer]: its methods register and fill
// memory in that process, make it transfer, and read its state. The process ends with the test. What the engine prints is
// shown when the test fails. A crash or a hang of the engine is an error of the call that met it, never a hanging test.
//
// A peer always uses the TCP transport and peer-to-peer metadata on the loopback interface. Nothing of the environment's
// own MC_ settings reaches it, only what [Start] is given.
//
// [Record] puts a proxy between a target and its initiators and writes their conversation down as a transcript. The
// tests here record those of interop/testdata/transcripts:
//
//	go test ./interop/cxx -run TestRecordTranscripts -record
//
// Invariants: a Peer's methods may be called from any goroutine, and calls run side by side; every call has a deadline,
// longer than any time-out of the engine itself; after a deadline the process is killed, so that no later call meets a
// peer in an unknown state.
//
// Goroutines: one per Peer, which reads answers and ends with the process; those of a Recording, which end with
// Recording.Stop.
package cxx
