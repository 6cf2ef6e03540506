package segjson

// MaxBuffers is the largest number of buffers that Parse accepts.
const MaxBuffers = 1 << 20

// ProtocolTCP is the name of the tcp protocol, whose buffers must be complete.
const ProtocolTCP = "tcp"

// Descriptor describes a segment. Parse fills what the peer wrote; Append
// writes all of it except ExtensionError.
type Descriptor struct {
	// Name is the owner's server name. Notify messages go there. It may be
	// empty in a descriptor that was read.
	Name string
	// Protocols holds at least one name. Append writes the first alone, since
	// published readers fail on anything but one plain string; the full list
	// belongs into the extension.
	Protocols []string
	// TCPDataHost is the bare host of the data port, without brackets; empty
	// if the writer is older than that key.
	TCPDataHost string
	// TCPDataPort is 0 if there is no TCP transport.
	TCPDataPort uint16
	// TCPProtoVersion is 0 if the writer did not say. That counts as version 1,
	// of an engine that may close its data connections after each request.
	TCPProtoVersion int
	// RDMAServerName is empty without rdma.
	RDMAServerName string
	// Timestamp is local time as "YYYY-MM-DD HH:MM:SS.uuuuuu", for people only.
	Timestamp string
	// Buffers is the classic list, in the writer's order. Entries may overlap.
	Buffers []Buffer
	// Moonpath is nil for a published peer, and for one whose extension this
	// package cannot read.
	Moonpath *Extension
	// ExtensionError says why a moonpath object that was there was ignored.
	ExtensionError error
}

// Buffer is one registered range.
type Buffer struct {
	// Name is the server name for tcp, the location for rdma and its kin.
	Name string
	// Addr and Length are not zero, and their sum does not wrap.
	Addr   uint64
	Length uint64
	// Protocol is empty unless the writer serves several protocols classically.
	Protocol string
}
