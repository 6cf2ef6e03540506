package ctrlframe

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/moonpath-io/moonpath/wire/jsoncpp"
)

// Type is the kind of message in a frame.
type Type byte

// The types that peers know. They answer any other by closing the connection,
// if not worse, so nothing else may be sent.
const (
	Connection Type = 0
	Metadata   Type = 1
	Notify     Type = 2
	Probe      Type = 3
)

// String returns the type's name, for messages.
func (t Type) String() string {
	switch t {
	case Connection:
		return "connection"
	case Metadata:
		return "metadata"
	case Notify:
		return "notify"
	case Probe:
		return "probe"
	}
	return "type " + strconv.Itoa(int(t))
}

// DefaultLimit and MaxLimit bound the length field, which counts type byte and
// body. DefaultLimit is what peers use unless they are configured otherwise;
// MaxLimit is the most that they can be set to.
const (
	DefaultLimit uint64 = 1 << 20
	MaxLimit     uint64 = 128 << 20
)

const lengthLen = 8

// firstRead is what is allocated for a body before its first byte has arrived.
const firstRead = 64 << 10

// Frame is one message. Legacy says that it has no type byte; Type is then
// Connection, and the answer has to be legacy too.
type Frame struct {
	Type   Type
	Legacy bool
	Body   []byte
}

// Append appends the bytes of f to dst, to be sent in one write. It checks
// nothing: the receiver's limit holds for replies as well.
func Append(dst []byte, f Frame) []byte {
	n := uint64(len(f.Body))
	if !f.Legacy {
		n++
	}
	dst = binary.LittleEndian.AppendUint64(dst, n)
	if !f.Legacy {
		dst = append(dst, byte(f.Type))
	}
	return append(dst, f.Body...)
}

// Read reads one frame and not a byte more. A limit above MaxLimit counts as
// MaxLimit. It returns io.EOF as it is if r ends before the first byte, and an
// *Error otherwise. After an error the connection has to be closed without an
// answer, as peers do.
func Read(r io.Reader, limit uint64) (Frame, error) {
	var head [lengthLen]byte
	if got, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return Frame{}, io.EOF
		}
		return Frame{}, &Error{Kind: Truncated, Length: lengthLen, Got: uint64(got), Cause: err}
	}
	n := binary.LittleEndian.Uint64(head[:])
	limit = min(limit, MaxLimit)
	if n == 0 {
		return Frame{}, &Error{Kind: Empty}
	}
	if n > limit {
		return Frame{}, &Error{Kind: TooLong, Length: n, Limit: limit}
	}
	payload, err := readPayload(r, n)
	if err != nil {
		return Frame{}, &Error{Kind: Truncated, Length: n, Got: uint64(len(payload)), Cause: err}
	}
	return classify(payload)
}

// readPayload doubles its memory as bytes arrive, so that a length alone costs
// the reader little. With an error it returns what has arrived.
func readPayload(r io.Reader, n uint64) ([]byte, error) {
	payload := make([]byte, 0, min(n, firstRead))
	for {
		room := payload[len(payload):min(uint64(cap(payload)), n)]
		got, err := io.ReadFull(r, room)
		payload = payload[:len(payload)+got]
		if err != nil || uint64(len(payload)) == n {
			return payload, err
		}
		payload = slices.Grow(payload, int(min(n-uint64(len(payload)), uint64(len(payload)))))
	}
}

func classify(payload []byte) (Frame, error) {
	first := payload[0]
	if Type(first) <= Probe {
		if _, err := jsoncpp.Parse(payload[1:]); err != nil {
			return Frame{}, &Error{Kind: NotJSON, Type: first, Cause: err}
		}
		return Frame{Type: Type(first), Body: payload[1:]}, nil
	}
	value, err := jsoncpp.Parse(payload)
	if err != nil && startsNoText(first) {
		return Frame{}, &Error{Kind: UnknownType, Type: first}
	}
	if err != nil {
		return Frame{}, &Error{Kind: NotJSON, Type: first, Cause: err}
	}
	if value.Kind() != jsoncpp.Object {
		return Frame{}, &Error{Kind: NotObject, Type: first}
	}
	return Frame{Type: Connection, Legacy: true, Body: payload}, nil
}

// startsNoText tells a type byte that this version does not know from text that
// merely is no JSON.
func startsNoText(c byte) bool { return c < ' ' || c >= 0x7f }
