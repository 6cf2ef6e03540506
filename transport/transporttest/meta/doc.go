// Package meta runs random histories of calls against two engines and compares their memory with a plain model: a
// metamorphic test of what completed, failed, cancelled and quiet mean.
//
// A history is a list of steps: register and unregister memory, submit batches of reads and writes, wait for them, cancel
// and close them, make single transfers, with a limit or without, freeze and cut the connection. The caller supplies a
// System, the engines under these operations; package meta makes the histories, keeps the model, and looks. Run is the
// whole for a test; Find, Replay and Shrink are its parts.
//
// The model knows for each byte of the target what it may be. A write that completed leaves its bytes; one that was
// refused leaves what was there; one that ended with the remote state unknown may have happened or may still happen, byte
// by byte, for the rest of the history; of writes that overlap in time and place either may win. A byte that is nothing of
// that is a violation. Local memory is exact: once a request has ended its buffer is filled with new bytes, which nobody
// may send or overwrite.
//
// Histories come from a seed and are text, too (Parse, History.String). A failure prints the seed and the shortest text
// that still fails; -meta.seed and -meta.history run them again. The same history gives the same calls in the same order;
// how the engines' own goroutines interleave is not replayed.
//
// Invariants: the runner makes one call of a System at a time; every wait is bounded; a step that makes no sense in the
// state that it meets (a batch that is gone, memory that is in use) does nothing, so that any part of a history is one.
//
// Goroutines: one for each call that may be stuck, gone when the call returns. A call that never does is a violation, and its
// goroutine and the system's memory are left behind.
package meta
