package tcpframe

import (
	"encoding/binary"
	"strconv"
)

// StatusLen is the size of a status frame in bytes.
const StatusLen = 8

// Status codes. Published peers know OK and AddressRejected only; the others go
// to a peer that has sent a hello on the same connection, and to nobody else.
const (
	OK               uint32 = 0 // done; for a read the payload follows
	AddressRejected  uint32 = 1 // no single registered buffer holds the range
	WrongIncarnation uint32 = 2 // hello only: another process owns the port now
	VersionRejected  uint32 = 3 // hello only: no version in common
	NotPermitted     uint32 = 4 // registered, but not remotely accessible
	BadRequest       uint32 = 5 // unknown opcode, zero length, or a range that wraps
)

// statusMagic is "MCTV" in the high half of the frame.
const statusMagic uint64 = 0x4D435456 << 32

// PutStatus writes a status frame to the first StatusLen bytes of dst. It
// panics if dst is shorter.
func PutStatus(dst []byte, code uint32) {
	_ = dst[StatusLen-1]
	binary.LittleEndian.PutUint64(dst, statusMagic|uint64(code))
}

// ParseStatus reads a status frame from the first StatusLen bytes of src. If ok
// is false the bytes are no status frame: the peer speaks version 1, and the
// connection is out of step and has to be closed. It panics if src is shorter.
func ParseStatus(src []byte) (code uint32, ok bool) {
	_ = src[StatusLen-1]
	v := binary.LittleEndian.Uint64(src)
	return uint32(v), v&^0xFFFFFFFF == statusMagic
}

// StatusText says what a status code means, for messages. Unknown codes are
// named by their number.
func StatusText(code uint32) string {
	switch code {
	case OK:
		return "ok"
	case AddressRejected:
		return "address rejected: no single registered buffer holds the range"
	case WrongIncarnation:
		return "wrong incarnation: another process owns the port now"
	case VersionRejected:
		return "version rejected: no hello version in common"
	case NotPermitted:
		return "not permitted: the buffer is not remotely accessible"
	case BadRequest:
		return "bad request: unknown opcode, zero length, or a range that wraps"
	}
	return "unknown status code " + strconv.FormatUint(uint64(code), 10)
}
