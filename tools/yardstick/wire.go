package main

import "encoding/binary"

// The exchange of protocol v2: a 24-byte header (size, address, opcode, padding), an 8-byte status, and the payload
// after the header (write) or after the status (read).
const (
	headerBytes = 24
	statusBytes = 8

	opRead  = 0x80
	opWrite = 0x81

	statusOK       = uint64(0x4D435456) << 32
	statusRejected = statusOK | 1
)

type header struct {
	size, addr uint64
	op         byte
}

func (h header) put(b []byte) {
	binary.LittleEndian.PutUint64(b[0:], h.size)
	binary.LittleEndian.PutUint64(b[8:], h.addr)
	clear(b[16:headerBytes])
	b[16] = h.op
}

func parseHeader(b []byte) header {
	return header{
		size: binary.LittleEndian.Uint64(b[0:]),
		addr: binary.LittleEndian.Uint64(b[8:]),
		op:   b[16],
	}
}

func statusFrame(status uint64) []byte {
	return binary.LittleEndian.AppendUint64(nil, status)
}
