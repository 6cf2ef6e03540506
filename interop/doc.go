// Package interop holds the tests of moonpath against the published C++ engine.
//
// The engine is PyPI's mooncake-transfer-engine-non-cuda, pinned by venv.sh, which makes the environment it runs in.
// Package cxx drives a real process of it from a Go test. Package transcript reads, writes and replays recorded
// conversations between such processes, kept in testdata/transcripts, and package replay plays them against moonpath, so
// that the wire is checked even where the package cannot be installed. Package pattern makes payload bytes that both sides
// can compute, so that they need not be sent over a pipe.
//
// The tests of this folder run moonpath against a living peer, as initiator and as target; docs/compat/interop.md lists
// them. A pair (pair_test.go) is the two engines of one direction with a region each, so that what both directions have in
// common is one test. Every process and engine ends with its test.
//
// The rule of this folder: what cannot be tested here is skipped by name and with the reason, never passed.
package interop
