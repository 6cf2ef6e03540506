package mem

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/xfer"
)

// Mapping is memory outside the Go heap, page-aligned and zeroed. Free gives it back.
type Mapping struct {
	bytes []byte
	huge  bool
}

// HugePageSize is the size of the pages that Map asks for when the length is a multiple of it.
const HugePageSize = 2 << 20

// Map reserves n bytes outside the Go heap. Explicit huge pages are used when n is a multiple of
// HugePageSize and the system has some; otherwise transparent ones are asked for. populate touches every
// page now, so that no transfer pays for it.
func Map(n uint64, populate bool) (*Mapping, error) {
	if n == 0 || n > xfer.MaxLength {
		return nil, &xfer.Fault{Code: xfer.InvalidArgument, Stage: xfer.StageRegister, Detail: fmt.Sprintf("cannot allocate %d bytes", n)}
	}
	m, err := reserve(n)
	if err != nil {
		return nil, &xfer.Fault{Code: xfer.Memory, Stage: xfer.StageRegister, Cause: err, Detail: fmt.Sprintf("cannot map %d bytes", n)}
	}
	if populate {
		m.touch()
	}
	return m, nil
}

func reserve(n uint64) (*Mapping, error) {
	const prot = unix.PROT_READ | unix.PROT_WRITE
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	if n%HugePageSize == 0 {
		if b, err := unix.Mmap(-1, 0, int(n), prot, flags|unix.MAP_HUGETLB); err == nil {
			return &Mapping{bytes: b, huge: true}, nil
		}
	}
	b, err := unix.Mmap(-1, 0, int(n), prot, flags)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // advice; kernels without it serve small pages
	return &Mapping{bytes: b}, nil
}

// touch makes every page present, by one call where the kernel has it (Linux 5.14).
func (m *Mapping) touch() {
	if unix.Madvise(m.bytes, unix.MADV_POPULATE_WRITE) == nil {
		return
	}
	m.touchByHand()
}

func (m *Mapping) touchByHand() {
	for i := 0; i < len(m.bytes); i += unix.Getpagesize() {
		m.bytes[i] = 0
	}
}

// Bytes returns the memory; it is valid until Free.
func (m *Mapping) Bytes() []byte { return m.bytes }

// Huge reports whether explicit huge pages back the memory.
func (m *Mapping) Huge() bool { return m.huge }

// Free unmaps the memory. Nothing may use it afterwards; a second Free does nothing.
func (m *Mapping) Free() error {
	b := m.bytes
	if b == nil {
		return nil
	}
	m.bytes = nil
	if err := unix.Munmap(b); err != nil {
		return &xfer.Fault{Code: xfer.Memory, Stage: xfer.StageClose, Cause: err, Detail: fmt.Sprintf("unmapping %d bytes at %#x", len(b), AddrOf(b)),
			Next: "the memory stays mapped until the process ends"}
	}
	return nil
}
