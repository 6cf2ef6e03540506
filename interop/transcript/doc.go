// Package transcript reads, writes and replays recorded conversations between two engines.
//
// A transcript is a text file. It holds what went over the wire between one initiator and one target, what the
// initiator's caller asked for, and what the target's memory held before and after; so either side can be replaced by
// moonpath and the other one played from the file, without the package that it was recorded from. The files of
// testdata/transcripts were recorded by interop/cxx from the published C++ engine.
//
// # Format
//
// The first line is "moonpath-transcript 1". Every other line is blank, a comment (#, not kept) or a word and what
// belongs to it. First come the facts about the recording:
//
//	about     write of 5 bytes, protocol v2          one line
//	note      any text                               zero or more
//	initiator C++ 0.3.13.post1                       who it was
//	target    C++ 0.3.13.post1
//	setting   MC_TCP_PROTO=1                         of the initiator, zero or more
//
// then the values that are different in every run, as symbols with the value that was recorded. A replay binds them anew:
//
//	string NAME 127.0.0.1:15234          the target's segment name; the value is the rest of the line
//	number DATA_PORT 16210
//	region A 0x7f4e5a3b1000 65536 1      memory registered by the target: address, length, and the seed of
//	                                     package pattern that fills it beforehand
//
// then what the initiator's caller asked for, in order, each with the result code. A transcript of a raw socket client has
// no calls:
//
//	call open = 0                        fetch the target's descriptor
//	call probe = 0
//	call write A+16 68 65 6c 6c 6f = 0   destination and payload
//	call read A+16 5 = 0                 source and length
//	call notify nm text = 0              name and text, one word each
//
// then the conversation, in the order in which it was seen. Each line starts with the number of the connection; ">" is
// from the initiator, "<" from the target:
//
//	1 open control                       or data
//	1 > 04 00 00 00 00 00 00 00 01 7b 7d 0a
//	1 < eof                              an orderly end of that direction
//	1 < reset                            an abrupt end of the connection, caused by that side
//
// A direction without an end was still open when the recording ended. Bytes that were sent in several pieces are one
// message; a message ends where the other side speaks on that connection, and before each header that the initiator sends
// on a data connection. A request is one message even if the target answered in the middle of it. Whether a close with
// unread input arrives as eof or as reset is a matter of timing.
//
// Last come ranges of the target's memory as they were in the end:
//
//	after A+16 68 65 6c 6c 6f
//
// Messages, payloads and memory are lists of items, separated by blanks:
//
//	4d                   one byte in hex
//	`{"addr":`           printable ASCII text
//	any(`2026-11-30`)    bytes, as text or as in any(c0 00), that mean nothing to the receiver or are new in every run
//	u64(A+16)            a number or the address of a region, plus or minus an offset, as eight little-endian bytes
//	dec(A+16)            the same as decimal digits
//	str(NAME)            the text of a string
//	pattern(2,16,48)     bytes 16 up to, not including, 48 of the pattern of seed 2
//	rest64               the number of bytes that follow in this message, as eight little-endian bytes
//
// With the recorded bindings a message is byte for byte what was on the wire, any included: nothing is normalized. One thing was changed between the two sides: the recorder sat between them, so the
// initiator saw the recorder's ports where the target had sent NAME and DATA_PORT.
//
// # Replay
//
// [Player] plays one side of a transcript against a live other side. The caller makes the target's regions or the
// initiator's calls, and compares memory with After. Play runs in the caller's goroutine; the package starts none.
package transcript
