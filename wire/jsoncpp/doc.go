// Package jsoncpp reads and writes JSON the way published peers do, which use
// the C++ library of that name.
//
// The standard decoder does not fit: it refuses what those peers accept
// (comments, bytes behind the first value), matches keys without regard to
// case, and its depth limit turns an ignored key into a failed message. The
// standard encoder writes non-ASCII text as it is, where those peers escape it,
// and the bytes are part of the wire format (docs/reference/wire). segjson,
// ctrlframe and handshake share this package so that all messages follow the
// same rules.
//
// Parse checks one text from end to end and returns a Value, which is a part of
// that text. Everything after that cannot fail, and decodes only what is asked
// for, so that keys that nobody reads cost one pass and no memory.
//
// Accepted beyond the JSON standard: comments where white space may stand,
// control characters and invalid UTF-8 in strings, anything behind the first
// value. Refused: a byte order mark, trailing commas, NaN, single quotes,
// surrogates that are not a pair, and numbers that JSON does not know, such as
// 01, 1. and 0x10. Published readers let some of the latter two pass; no writer
// is known to make them.
//
// Invariants: time is linear in the text and nothing recurses, so that no
// nesting can exhaust the stack; memory is at most one byte per level of
// nesting, plus what is decoded on request.
//
// The package starts no goroutine and keeps no state. A Value may be read
// concurrently as long as nobody writes to the text below it.
package jsoncpp
