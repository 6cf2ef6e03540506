package xfer

// Code is an error number. Those below 1000 are Mooncake's; those above are moonpath's own. A Code is
// itself an error, so errors.Is(err, xfer.BatchBusy) works on any error of this module.
type Code int

// Mooncake's numbers, as Status codes; Int gives the form of the functions that return a negative int.
const (
	OK                    Code = 0
	InvalidArgument       Code = 1
	TooManyRequests       Code = 2
	AddressNotRegistered  Code = 3
	BatchBusy             Code = 4
	DeviceNotFound        Code = 6
	AddressOverlapped     Code = 7
	NotSupportedTransport Code = 8
	DNS                   Code = 101
	Socket                Code = 102
	MalformedJSON         Code = 103
	RejectHandshake       Code = 104
	Metadata              Code = 200
	Endpoint              Code = 201
	Context               Code = 202
	Numa                  Code = 300
	Clock                 Code = 301
	Memory                Code = 302
	NotImplemented        Code = 999
)

// moonpath's own numbers.
const (
	Closed      Code = 1001 // used after Close or Uninstall
	Interrupted Code = 1002 // the caller's context ended
	Deadline    Code = 1003 // a time limit of the engine ran out
	Refused     Code = 1004 // the peer refused an address or a permission
	WrongPeer   Code = 1005 // another process answers at the peer's port
	BadProtocol Code = 1006 // the peer sent what its protocol does not allow
)

// codeRow is what is known about a code: the table is the single list behind names, default next steps
// and docs/compat/codes.md.
type codeRow struct {
	code Code
	name string
	text string
	side Side
	next string
}

var codeRows = []codeRow{
	{OK, "OK", "success", "", "nothing to do"},
	{InvalidArgument, "InvalidArgument", "invalid argument", SideCaller, "correct the argument that the message names"},
	{TooManyRequests, "TooManyRequests", "more requests than the batch or the queue has room for", SideCaller, "allocate a larger batch, or wait until tasks end and submit again"},
	{AddressNotRegistered, "AddressNotRegistered", "address is not registered", SideCaller, "register the memory first; moonpath segment NAME lists what a peer has registered"},
	{BatchBusy, "BatchBusy", "batch has unfinished tasks", SideCaller, "wait for the batch before freeing or resetting it"},
	{DeviceNotFound, "DeviceNotFound", "device not found", SideHere, "run moonpath info to see which devices were found"},
	{AddressOverlapped, "AddressOverlapped", "memory overlaps a registration", SideCaller, "unregister the older registration first, or register disjoint ranges"},
	{NotSupportedTransport, "NotSupportedTransport", "no usable transport", SideHere, "run moonpath explain --segment NAME to see why each transport was rejected"},
	{DNS, "DNS", "name resolution failed", SideCaller, "check the host part of the segment name"},
	{Socket, "Socket", "network input or output failed", SideNetwork, "check that the peer is running and reachable: moonpath probe NAME"},
	{MalformedJSON, "MalformedJSON", "peer answered with malformed JSON", SideCaller, "check that the port belongs to a Mooncake or moonpath engine"},
	{RejectHandshake, "RejectHandshake", "peer rejected the handshake", SidePeer, "read the peer's message; its log says more"},
	{Metadata, "Metadata", "segment descriptor not available", SidePeer, "check the segment name and that its owner is running: moonpath segment NAME"},
	{Endpoint, "Endpoint", "endpoint failed", SideMetadata, "open the segment again"},
	{Context, "Context", "transport context failed", SideHere, "run moonpath info to see the state of the transports"},
	{Numa, "Numa", "NUMA operation failed", SideHere, "check the location of the memory"},
	{Clock, "Clock", "clock or waiting failed", SideHere, "try again"},
	{Memory, "Memory", "memory operation failed", SideHere, "check the memory limits of the process (ulimit -a)"},
	{NotImplemented, "NotImplemented", "not implemented", SideHere, "run moonpath info to see what this version offers"},
	{Closed, "Closed", "used after close", SideCaller, "open a new engine, batch or segment"},
	{Interrupted, "Interrupted", "interrupted by the caller", SideCaller, "the caller's context ended; give it more time if that was not meant"},
	{Deadline, "Deadline", "time limit ran out", SidePeer, "check whether the peer is frozen or cut off: moonpath probe NAME"},
	{Refused, "Refused", "peer refused the request", SideCaller, "compare address and length with moonpath segment NAME; the memory may have been unregistered or may not be remotely accessible"},
	{WrongPeer, "WrongPeer", "another process answers at the peer's port", SideMetadata, "the peer was restarted or replaced; open the segment again"},
	{BadProtocol, "BadProtocol", "peer broke the protocol", SidePeer, "check the peer's version with moonpath segment NAME"},
}

func (c Code) row() *codeRow {
	for i := range codeRows {
		if codeRows[i].code == c {
			return &codeRows[i]
		}
	}
	return nil
}

// Error returns the code's meaning in words.
func (c Code) Error() string {
	if r := c.row(); r != nil {
		return r.text
	}
	return "unknown code"
}

// Name returns the constant's name, such as "BatchBusy".
func (c Code) Name() string {
	if r := c.row(); r != nil {
		return r.name
	}
	return "Unknown"
}

// Next returns what a caller who has only the code can do about it.
func (c Code) Next() string {
	if r := c.row(); r != nil {
		return r.next
	}
	return "report the number"
}

// Int returns the number that Mooncake's int functions return: 0, or the negated code. NotImplemented
// is -303 there; codes without such a form are negated all the same.
func (c Code) Int() int {
	if c == NotImplemented {
		return -303
	}
	return -int(c)
}

// Codes returns every code of this version in ascending order.
func Codes() []Code {
	cs := make([]Code, len(codeRows))
	for i, r := range codeRows {
		cs[i] = r.code
	}
	return cs
}
