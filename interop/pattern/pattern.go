package pattern

import (
	"crypto/sha256"
	"crypto/sha3"
	"encoding/binary"
	"encoding/hex"
)

// Bytes returns the first n bytes of the pattern of seed: the output of SHAKE128 over the eight little-endian bytes of
// the seed. A shorter result is a prefix of a longer one. It panics if n is negative.
func Bytes(seed uint64, n int) []byte {
	var input [8]byte
	binary.LittleEndian.PutUint64(input[:], seed)
	return sha3.SumSHAKE128(input[:], n)
}

// Checksum returns the SHA-256 of b in lower-case hex, the form in which the C++ peer reports its memory.
func Checksum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
