package tcpframe

import "encoding/binary"

// HeaderLen is the size of a request header in bytes.
const HeaderLen = 24

// Opcodes of a request header. A version 2 request is OpRead or OpWrite with
// OpV2 set. Published servers execute any other low seven bits as a read, so a
// server of ours has to refuse them and a client must never send them.
const (
	OpRead  byte = 0x00 // target memory to initiator
	OpWrite byte = 0x01 // initiator to target memory
	OpV2    byte = 0x80 // flag: the request is answered by a status frame
	OpHello byte = 0xC0 // moonpath's hello; carries OpV2, so that version 2 servers answer it
)

// Header is a request header. Addr is in the target's address space and opaque
// to the initiator; in a hello it carries the expected incarnation.
type Header struct {
	Size   uint64
	Addr   uint64
	Opcode byte
}

// PutHeader writes a request header to dst, with zero padding.
func PutHeader(dst *[HeaderLen]byte, size, addr uint64, opcode byte) {
	binary.LittleEndian.PutUint64(dst[0:8], size)
	binary.LittleEndian.PutUint64(dst[8:16], addr)
	// One store for opcode and padding, so that a reused dst keeps nothing.
	binary.LittleEndian.PutUint64(dst[16:24], uint64(opcode))
}

// ParseHeader reads a request header from the first HeaderLen bytes of src and
// ignores the padding, which published initiators leave uninitialised. It
// panics if src is shorter.
func ParseHeader(src []byte) Header {
	_ = src[HeaderLen-1]
	return Header{
		Size:   binary.LittleEndian.Uint64(src[0:8]),
		Addr:   binary.LittleEndian.Uint64(src[8:16]),
		Opcode: src[16],
	}
}
