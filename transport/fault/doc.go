// Package fault makes transfers go wrong on purpose, so that tests of the engine, of a transport or of a program can
// look at what happens then.
//
// It works at two places. Wrap decorates any transport.Transport, and Factory any transport.Factory: chunks are dropped,
// delayed, executed twice, answered out of order, corrupted, failed or stalled on their way in or out, and dials fail.
// Listen is a TCP proxy on a free port of 127.0.0.1 for real sockets, whatever is behind them: streams are cut,
// delayed, stalled, swallowed, repeated, reordered and corrupted at an offset, and connections are refused or their
// SYNs ignored. Front puts such a proxy in front of a whole engine, moonpath's or Mooncake's: who opens the segment
// under the front's name connects to the proxy's data port. Redirect does the same for one's own segment.Directory,
// and Via for one description.
//
// What goes wrong is said by a Plan: rules, and a seed where chance decides. Two plans of the same seed and rules that
// see the same chunks and connections in the same order do the same to them; Plan.Events lists what was done.
//
// Invariants: the decorator keeps the contract of package transport towards both sides. Each chunk comes back exactly
// once, whatever its rule; what is not passed on comes back when it is cancelled or when the route is quiesced;
// certainties are true, but for those that a Fail rule makes up. Local memory changes only while its chunk is out. A
// proxy holds at most two buffers of 128 KiB for each connection, and at most 512 connections.
//
// Goroutines: a decorated route has one that wakes the transport, and a timer for each chunk that is delayed; Quiesce ends them.
// A proxy has one that accepts and two for each connection, a front one more and one for each question; Close ends
// them all before it returns.
package fault
