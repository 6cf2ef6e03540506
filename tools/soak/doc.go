// Soak runs moonpath for a long time under everything that goes wrong in practice, and checks afterwards that what it said
// was true and that nothing is left. "make soak" and "make poison" run it; docs/how-to/soak.md explains it.
//
// Two programs are in it. The first moves random batches between engines of this process and targets in processes of their
// own (the moonpath tool, and the published C++ engine where it can be had), which are killed, frozen and restarted
// meanwhile, and compares every byte that is certain with a model of the targets' memory. The second, poison, moves many
// small batches over loopback and overwrites their memory the moment that they have ended.
//
// Invariants: a seed decides what is asked for, though not how the processes race; a violation is reported in words with the
// seed; a target is restarted under the same ports, and ends with this process, however that ends.
//
// Goroutines: one for each worker, one that troubles the targets, one that samples memory and reports progress, and one for
// each target process; all have ended before the leftovers are counted.
package main
