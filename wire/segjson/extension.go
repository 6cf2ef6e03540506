package segjson

// ExtensionSchema is the version of the moonpath object that this package knows,
// and ExtensionMin the oldest reader version that understands what a writer of
// it writes. Objects whose Min is above ExtensionSchema are not read.
const (
	ExtensionSchema = 1
	ExtensionMin    = 1
)

// MaxExtensionProtocols is how many protocols the masks of runs can name.
const MaxExtensionProtocols = 64

// Extension is the moonpath object.
type Extension struct {
	// Schema is the version written, Min the oldest reader version that
	// understands it; 1 <= Min <= Schema.
	Schema int
	Min    int
	// Incarnation names one life of the process; never zero.
	Incarnation uint64
	// Host is 16 lower-case hex digits of the hashed boot id, equal on the
	// same running kernel, or empty if unknown.
	Host string
	// Protocols holds every protocol that the owner serves, without repeats.
	Protocols []string
	// HelloVersion is the newest hello on the TCP data port; 0 is none.
	HelloVersion int
	// Runs covers Buffers of the descriptor, in order and completely.
	Runs []BufferRun
}

// BufferRun says which protocols serve Count buffers in a row: bit i of Mask
// stands for Protocols[i] of the extension.
type BufferRun struct {
	Count int
	Mask  uint64
}
