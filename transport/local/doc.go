// Package local copies between memory of one process: the engine's own segment, and other engines in the
// same process. Such requests never pass through a socket, whatever else is installed.
//
// Small copies are made by the submitter, the rest by one copier per route, so that Submit returns soon. The
// target's memory is leased from its own region table while it is copied, and the target's rules hold: a
// registration that peers may not reach is reached by its owner only.
//
// Goroutines: one copier per route.
package local
