// Command yardstick moves Mooncake TCP v2 exchanges with the least Go that can do it, so that a benchmark can say how
// much of what is possible on a machine the engine reaches.
//
// There are two roles. "yardstick target" maps one block of memory and serves exchanges on it; "yardstick init" opens
// one connection per submitter and repeats one batch of requests over the same window, as the engines under comparison
// do. The initiator talks to any target of protocol v2 whose data port and buffer address are known.
//
// It is no part of the product. It has no registration, no discovery, no recovery and no report, and its target lets
// any local process write to its memory. It imports nothing of the engine, so that a mistake there cannot show up on
// both sides of a comparison.
//
// Invariants: a connection is used by one goroutine only; a vector handed to the kernel points into the mapped memory
// or into buffers that live as long as the connection; a batch is at most maxBatch requests, which is what makes it
// safe to send all of it before anything is read.
//
// Goroutines: one per accepted connection (target) or per submitter (initiator), and in the target one that accepts
// and one that waits for its standard input to end.
package main
