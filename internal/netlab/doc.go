// Package netlab puts a network of a chosen delay, loss and rate between two network namespaces of one host, so that
// what is true off loopback can be tested and measured without a second machine.
//
// The two namespaces are joined by two TUN devices, and this package carries the packets from one to the other: it
// delays, drops and paces them in user space, because netem is not in every kernel. Addresses, routes, TCP and its
// congestion control are the kernel's own. Interop tests and tools/netns use it; nothing that is shipped does.
//
// Invariants: nothing has a name outside of its namespace, and a namespace lives as long as a process is in it: a
// holder that ends when the pipe from this process closes, and what Command started, which dies with the thread that
// started it. So nothing is left behind, not even after SIGKILL, and there is nothing to sweep. Packets keep their
// order. What the line cannot hold it drops, as a switch does.
//
// Goroutines: two for each direction of a line, one that takes packets and one that delivers them; they end before
// Close returns. Opening a device takes one more, whose thread does not survive it.
package netlab
