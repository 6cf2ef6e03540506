package cxx

import "encoding/hex"

// Map gives zeroed memory of at least size bytes in the peer, page-aligned and not registered. The pages before and
// behind it fault on any access. It stays mapped as long as the process lives.
func (p *Peer) Map(size uint64) (addr uint64, err error) {
	err = p.process.call("map", map[string]any{"size": size}, &addr)
	return addr, err
}

// Alloc is Map and Register.
func (p *Peer) Alloc(size uint64) (addr uint64, err error) {
	if addr, err = p.Map(size); err != nil {
		return 0, err
	}
	return addr, p.Register(addr, size)
}

// Register registers memory of the peer with its engine.
func (p *Peer) Register(addr, length uint64) error {
	return p.coded("register", []any{addr, length})
}

// RegisterBatch registers buffers of the same length with one publication.
func (p *Peer) RegisterBatch(addrs []uint64, length uint64) error {
	lengths := make([]uint64, len(addrs))
	for i := range lengths {
		lengths[i] = length
	}
	return p.coded("register_batch", []any{addrs, lengths})
}

// Unregister takes back the registration that starts at addr.
func (p *Peer) Unregister(addr uint64) error {
	return p.coded("unregister", []any{addr})
}

// WriteMem stores data in the peer's memory, without the engine.
func (p *Peer) WriteMem(addr uint64, data []byte) error {
	return p.process.call("write_memory", map[string]any{"addr": addr, "text": hex.EncodeToString(data)}, nil)
}

// ReadMem returns the peer's memory, without the engine.
func (p *Peer) ReadMem(addr, length uint64) ([]byte, error) {
	var text string
	if err := p.process.call("read_memory", map[string]any{"addr": addr, "length": length}, &text); err != nil {
		return nil, err
	}
	return hex.DecodeString(text)
}

// LoadFile stores a file, at most limit bytes of it or none, in the peer's memory and returns its length.
func (p *Peer) LoadFile(addr, limit uint64, path string) (length uint64, err error) {
	err = p.process.call("load_file", map[string]any{"addr": addr, "path": path, "limit": limit}, &length)
	return length, err
}

// Fill stores pattern.Bytes(seed, length) in the peer's memory.
func (p *Peer) Fill(addr, length, seed uint64) error {
	return p.process.call("fill", map[string]any{"addr": addr, "length": length, "seed": seed}, nil)
}

// Zero clears the peer's memory.
func (p *Peer) Zero(addr, length uint64) error {
	return p.process.call("zero", map[string]any{"addr": addr, "length": length}, nil)
}

// Checksum returns pattern.Checksum of the peer's memory.
func (p *Peer) Checksum(addr, length uint64) (sum string, err error) {
	err = p.process.call("checksum", map[string]any{"addr": addr, "length": length}, &sum)
	return sum, err
}
