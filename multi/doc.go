// Package multi is the switchboard: it installs transports, plans each request, queues it at a route and
// adds up what comes back.
//
// A Batch holds tasks, one per request. Submitting copies the requests, leases their local memory, asks
// package selector for a path (the answer is cached per peer, size class and operation) and queues pieces at
// the route of that path. The route's takers pull chunks from there (transport.Source) and give each back
// once; the last chunk of a task ends it, the last task of a batch wakes the waiter.
//
// Invariants: a task ends exactly once, and when it has ended its local memory is leased no more; all pieces
// of a task are at one route, so what a task counts is guarded by that route's lock; ids carry a generation,
// so a stale or foreign one is an error. The package knows no transport by name.
//
// Goroutines: one per route that is being dialled or drained, one per description that is being refreshed, and one sweeper while batches have deadlines.
// None per request. Files that start them carry the mark moonpath:goroutines.
package multi
