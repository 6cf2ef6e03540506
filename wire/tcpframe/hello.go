package tcpframe

import (
	"encoding/binary"
	"errors"
	"strconv"
)

// HelloAnswerLen is the size of the answer to a hello in bytes. It starts with
// a status frame. Published servers send that part only, and close.
const HelloAnswerLen = 24

// HelloVersion is the newest, and oldest, hello version of this package.
const HelloVersion uint8 = 1

// FeatureDrain is the feature bit for staying connected after a rejection: the
// server reads and discards the payload of a rejected write up to its limit.
const FeatureDrain uint16 = 1

// ErrNotMoonpath says that the peer took a hello for a request with a bad
// address, as published servers do. It closes the connection; the initiator
// goes on with plain version 2 on a new one.
var ErrNotMoonpath = errors.New("tcpframe: the peer does not know hello; " +
	"fetch its descriptor again and, if it has no moonpath object, connect without hello")

// Hello is the first frame of an initiator towards a moonpath peer.
type Hello struct {
	Incarnation uint64 // of the target, as its descriptor says; not zero
	MaxVersion  uint8  // newest hello version that the initiator speaks
	MinVersion  uint8  // oldest; not zero
	Features    uint16 // all that the initiator can use
}

// HelloAnswer is the server's answer. Version, Features and DrainLimit hold for
// Code OK; after any other code the server closes.
type HelloAnswer struct {
	Code        uint32 // OK, WrongIncarnation or VersionRejected
	Incarnation uint64 // of the server, whatever the code
	Version     uint8  // chosen
	Features    uint16 // accepted: a subset of those in the hello
	DrainLimit  uint32 // largest rejected payload, in bytes, that does not end the connection
}

// HelloError says which part of a hello or its answer is malformed.
type HelloError struct {
	Part string // name of the part
	Want string
	Have string
}

// Error implements error.
func (e *HelloError) Error() string {
	return "tcpframe: malformed hello exchange: " + e.Part + ": want " + e.Want + ", have " + e.Have +
		"; close the connection, and check that the port belongs to a moonpath peer"
}

// PutHello writes h to dst.
func PutHello(dst *[HeaderLen]byte, h Hello) {
	PutHeader(dst, 0, h.Incarnation, OpHello)
	dst[17], dst[18] = 'M', 'P'
	dst[19], dst[20] = h.MaxVersion, h.MinVersion
	binary.LittleEndian.PutUint16(dst[21:23], h.Features)
}

// ParseHello reads a hello from a header whose opcode is OpHello. The error is
// a *HelloError. It panics if src is shorter than HeaderLen.
func ParseHello(src []byte) (Hello, error) {
	head := ParseHeader(src)
	h := Hello{
		Incarnation: head.Addr,
		MaxVersion:  src[19],
		MinVersion:  src[20],
		Features:    binary.LittleEndian.Uint16(src[21:23]),
	}
	switch {
	case head.Opcode != OpHello:
		return Hello{}, &HelloError{"opcode", "0xc0", "0x" + strconv.FormatUint(uint64(head.Opcode), 16)}
	case head.Size != 0:
		return Hello{}, &HelloError{"size", "0", strconv.FormatUint(head.Size, 10)}
	case src[17] != 'M' || src[18] != 'P':
		return Hello{}, &HelloError{"magic", `"MP"`, strconv.Quote(string(src[17:19]))}
	case h.Incarnation == 0:
		return Hello{}, &HelloError{"incarnation", "a number above 0", "0"}
	case h.MinVersion == 0 || h.MaxVersion < h.MinVersion:
		return Hello{}, &HelloError{"versions", "1 <= min <= max", "min " +
			strconv.Itoa(int(h.MinVersion)) + ", max " + strconv.Itoa(int(h.MaxVersion))}
	}
	return h, nil
}

// Choose returns the newest version that h and a server speaking oldest to
// newest have in common; ok is false if there is none.
func (h Hello) Choose(oldest, newest uint8) (version uint8, ok bool) {
	version = min(h.MaxVersion, newest)
	return version, version >= max(h.MinVersion, oldest)
}

// PutHelloAnswer writes a to dst.
func PutHelloAnswer(dst *[HelloAnswerLen]byte, a HelloAnswer) {
	PutStatus(dst[:], a.Code)
	binary.LittleEndian.PutUint64(dst[8:16], a.Incarnation)
	dst[16], dst[17] = a.Version, 0
	binary.LittleEndian.PutUint16(dst[18:20], a.Features)
	binary.LittleEndian.PutUint32(dst[20:24], a.DrainLimit)
}

// ParseHelloAnswer reads all that the server sent before it closed, at most
// HelloAnswerLen bytes. The error is ErrNotMoonpath if the status rejects an
// address, whatever follows, and a *HelloError for anything else that is no
// answer.
func ParseHelloAnswer(src []byte) (HelloAnswer, error) {
	if len(src) < StatusLen {
		return HelloAnswer{}, shortAnswer(len(src))
	}
	code, ok := ParseStatus(src)
	if !ok {
		return HelloAnswer{}, &HelloError{"status frame", `"MCTV" in its high half`,
			"0x" + strconv.FormatUint(binary.LittleEndian.Uint64(src), 16)}
	}
	switch code {
	case AddressRejected:
		return HelloAnswer{}, ErrNotMoonpath
	case OK, WrongIncarnation, VersionRejected:
	default:
		return HelloAnswer{}, &HelloError{"status code", "0, 2 or 3", strconv.FormatUint(uint64(code), 10)}
	}
	if len(src) < HelloAnswerLen {
		return HelloAnswer{}, shortAnswer(len(src))
	}
	a := HelloAnswer{
		Code:        code,
		Incarnation: binary.LittleEndian.Uint64(src[8:16]),
		Version:     src[16],
		Features:    binary.LittleEndian.Uint16(src[18:20]),
		DrainLimit:  binary.LittleEndian.Uint32(src[20:24]),
	}
	if a.Incarnation == 0 {
		return HelloAnswer{}, &HelloError{"incarnation", "a number above 0", "0"}
	}
	if code == OK && a.Version == 0 {
		return HelloAnswer{}, &HelloError{"version", "a number above 0", "0"}
	}
	return a, nil
}

func shortAnswer(n int) error {
	return &HelloError{"length", strconv.Itoa(HelloAnswerLen) + " bytes", strconv.Itoa(n)}
}
