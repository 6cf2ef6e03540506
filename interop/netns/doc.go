// Package netns tests two moonpath engines that are not on one host as far as the kernel can tell: each is in a network
// namespace of its own, with a line between them that delays, loses packets, has a limited rate, or goes dark
// (internal/netlab).
//
// It is a package of tests. The test program starts itself twice more: in a namespace of its own, so that the engine
// under test can be in the process of the test, and as the target on the far host. Without root, or where the kernel has
// no namespaces or TUN devices, the tests are skipped by the reason. What the line does to throughput is measured by
// "make netns" (docs/bench/netns.md).
//
// Goroutines: those of the engines.
package netns
