// Command citest runs the Go tests of this module the way a reader wants to see them.
//
// It fits between the Makefile and the go command: it starts "go test -json", shows one line of progress per
// package, prints the output of what failed and of nothing else, and closes with one list of everything that was
// skipped and why, how to run each failure again, and a last line "N passed, N failed, N skipped". The subcommand
// "fuzz" finds every fuzz target and runs each for a while.
//
// Invariants: a test is counted once, through its subtests where it has any; whatever did not end by itself, did not
// build, or failed outside a test counts as a failure; a run in which no test ran fails, because it proves nothing.
//
// Goroutines: while go test runs, one shows what is running when nothing else was shown for a while; it has ended
// before the counts are returned.
package main
