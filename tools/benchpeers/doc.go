// Command benchpeers measures moonpath's TCP transport against its peers: the published C++ engine, a bare Go program
// and iperf3, on this machine, over loopback.
//
// It fits behind "make bench-peers". A pair is an initiator and a target; a cell is what they do, such as 64 KiB writes
// in batches of 16 by 4 submitters. Every round goes through all cells, and in each cell through all pairs, one right
// after the other and in an order that rotates, because machines are shared and figures of different minutes do not
// compare. It prints one table of medians and spread, holds the medians against the gates, and writes
// build/bench-peers.json and docs/bench/tcp.md. A run that leaves out pairs or cells writes its page to build instead,
// so that no partial run replaces a whole one.
//
// Invariants: everything runs on 127.0.0.1; nothing it starts outlives it; every wait is bounded; what could not be
// measured is listed with the reason, and a gate that lacks a figure is not measured rather than held.
//
// Processor time is that of both processes of a pair from the start of the initiator to its end, over the bytes that
// were measured.
//
// Goroutines: one per target that reads its output, and one that waits for it to end.
package main
