// Package selector ranks the paths to a peer. It does no input or output, reads no clock or environment
// and keeps no state: the answer depends on its arguments alone.
//
// The engine joins what every transport offers into a View and asks Rank. The same function serves the hot
// path, which throws the reasons away and caches the order, and Explain, which passes a Decision to be filled.
package selector
