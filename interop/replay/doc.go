// Package replay plays the transcripts of interop/testdata/transcripts against moonpath, in the role of either side, so
// that its wire is checked even where the published C++ engine cannot be had.
//
// As target a moonpath engine gets what the recorded initiators sent, and has to answer byte for byte as the C++ target
// did. As initiator it is asked for what the recorded initiator's caller asked for, and has to send the same bytes. Two
// things are left out of the comparison: the object that moonpath adds to its descriptor and published engines ignore, and
// the body of a Metadata request, which no engine reads. Where moonpath does something else by design the tests say what.
//
// The package holds tests only; nothing of it outlives them.
package replay
