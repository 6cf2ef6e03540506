// Package obs counts, times and remembers what the engine does, at no cost to its data path.
//
// A hot path holds pointers to [Counter], [Gauge] and [Histogram], which are lock-free and do
// not allocate. A [Group] names them: the engine owns one tree of groups (engine, transport,
// peer, lane) and [Group.Snapshot] reads it when somebody looks. A [Recorder] keeps the last
// decisions, route changes and failures. [NewHandler] is the slog handler of the engine and
// the tool. There is no global registry: two engines in one process do not mix.
//
// Invariants: Add, Set and Record of the numeric types never allocate and never wait; a
// reader sees each number whole but not all numbers at one instant. Values must not be copied
// after first use. The package starts no goroutines.
package obs
