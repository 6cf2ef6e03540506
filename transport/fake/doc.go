// Package fake is a transport for tests of the engine, and of anything else that drives transports: it moves
// nothing, and answers each chunk as its script says.
//
// It implements transport.Transport in full, so it can be installed next to real ones. A script looks at every
// chunk that is taken and completes it, fails it, or holds it; what is held comes back when the test calls Step or
// Answer, when the engine cancels it, or when the route is quiesced. Window and Piece bound what is taken, Repeat
// gives back what was given back before, and the Offers function sets the rows that the selector sees. Taken, Held,
// Attached and the other reading methods say what the engine did. A script may touch the chunk's memory, which is
// how a test moves bytes.
//
//	path := fake.New(fake.Options{Name: "path", Script: fake.Always(fake.Hold)})
//	// … install it, submit three requests …
//	err := path.AwaitHeld(ctx, 3)                    // they have been taken
//	path.Answer(isThird, fake.Fail(xfer.Socket, xfer.Unknown))
//	path.Step(2)                                     // the other two complete
//
// Invariants: a chunk that was taken comes back once, unless Repeat is called; a window is never exceeded; a route
// that is quiesced holds nothing. The fake also watches its user: it returns errors for memory that is attached twice
// or detached while a chunk uses it, and for Close before all routes are quiesced.
//
// The package starts no goroutines: chunks are taken, and the script runs, in the goroutine that calls Kick, Step,
// Answer, Cancel or Quiesce; of several at a time, one works for all.
package fake
