package ctrlframe

import (
	"encoding/binary"
	"strconv"
)

// Kind says what is wrong with a frame.
type Kind uint8

// The kinds of errors.
const (
	Truncated   Kind = iota // fewer bytes than announced, see Cause
	TooLong                 // length above the limit
	Empty                   // length 0
	NotJSON                 // the body does not parse, see Cause
	NotObject               // an old-protocol body of another kind
	UnknownType             // a type byte that no version knows
)

// Error says why a frame was refused. Fields that its kind does not mention are
// zero.
type Error struct {
	Kind   Kind
	Length uint64 // announced bytes: Truncated, TooLong
	Got    uint64 // bytes that arrived: Truncated
	Limit  uint64 // TooLong
	Type   byte   // first byte of the payload: NotJSON, NotObject, UnknownType
	Cause  error  // of the reader: Truncated; of the JSON text: NotJSON
}

// Error implements error.
func (e *Error) Error() string { return "ctrlframe: " + e.text() }

// Unwrap returns the cause, such as a deadline of the connection.
func (e *Error) Unwrap() error { return e.Cause }

func (e *Error) text() string {
	switch e.Kind {
	case Truncated:
		return "the connection ended after " + decimal(e.Got) + " of " + decimal(e.Length) + " bytes (" +
			e.Cause.Error() + "); try again, and check the peer's log if it happens again"
	case TooLong:
		return "the peer announced " + decimal(e.Length) + " bytes" + e.asText() + ", the limit is " +
			decimal(e.Limit) + "; check that both ends use the control port, or raise the limit with " +
			"MC_HANDSHAKE_MAX_LENGTH (at most " + decimal(MaxLimit) + ")"
	case Empty:
		return "the peer announced 0 bytes; check that it is a transfer engine"
	case NotJSON:
		return "the body behind byte 0x" + strconv.FormatUint(uint64(e.Type), 16) + " is " + e.Cause.Error() +
			"; check that the peer is a transfer engine"
	case NotObject:
		return "an old-protocol message must be a JSON object; check that the peer is a transfer engine"
	default:
		return "unknown message type 0x" + strconv.FormatUint(uint64(e.Type), 16) +
			", known are 0 to 3; the peer may be newer than this engine"
	}
}

// asText shows a length that is made of letters: then somebody speaks another
// protocol.
func (e *Error) asText() string {
	var raw [lengthLen]byte
	binary.LittleEndian.PutUint64(raw[:], e.Length)
	for _, c := range raw {
		if c < ' ' || c > '~' {
			return ""
		}
	}
	return " (the text " + strconv.Quote(string(raw[:])) + ")"
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }
