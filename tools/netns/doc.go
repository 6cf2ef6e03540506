// Netns measures moonpath and iperf3 between two hosts that are network namespaces, over lines of chosen delay, loss and
// rate (internal/netlab), and writes docs/bench/netns.md. "make netns" runs it.
//
// Invariants: both use the same number of streams and move bytes in the same direction over the same line; their
// measurements take turns; what is compared are medians. A path that could not be measured is named with the reason.
//
// Goroutines: those of package os/exec, and one that looks at the connections in the middle of each measurement and ends
// with it.
package main
