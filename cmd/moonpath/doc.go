// Moonpath is the tool of the engine: it serves memory, moves bytes from and to files, measures, and says which path
// a transfer takes and why.
//
// Every command is one file with a struct of flags and a Run method, and uses the engine only through package
// moonpath: whatever the tool does, a program can do. What commands share is small: the flag types (size.go,
// flags.go), the opened peer (peer.go), registered windows that files pass through (window.go), the measuring loop
// (worker.go), output (output.go, progress.go) and failures (failure.go, exit.go).
//
// Invariants: standard output carries results only, and with --json exactly one JSON value; everything for people
// beside the result goes to standard error. Every error ends with what to do next, is printed once, and gives one of
// the exit codes in exit.go. A file that read writes appears complete or not at all.
//
// Goroutines: one for the progress line while a command takes longer than two seconds, one per measuring thread of
// bench, and those that read the output of the process that demo starts. All end before the command does.
package main
