package segment

import "context"

// Directory answers "who is that peer"; the packages under metadata implement it, and peer-to-peer is one
// of them. Every method is bounded in time by the implementation as well as by ctx.
type Directory interface {
	// Publish makes a new version of the engine's own description visible to peers. describe returns it,
	// the same each time; a directory that is asked for it calls describe then, and perhaps never, so that
	// registering many buffers one by one does not make as many lists of all of them.
	Publish(ctx context.Context, describe func() *Desc) error
	// Withdraw ends the publication.
	Withdraw(ctx context.Context) error
	// Lookup fetches a peer's description from its source, never from a cache.
	Lookup(ctx context.Context, name string) (*Desc, error)
}
