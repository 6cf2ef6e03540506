// Package segment knows peers: what a segment offers (Desc), which ones are open (Cache), and how a
// descriptor is obtained (Directory).
//
// A Desc is the engine's view of the JSON descriptor that wire/segjson encodes. It is immutable once
// published or read: a change makes a new one with a higher Gen. The cache hands out ids with a
// generation, so that a closed or foreign id is recognised.
//
// The package starts no goroutines; network input and output happen in the Directory that it is given.
package segment
