// Package transporttest is the conformance suite of the transport contract: what package transport demands of an
// implementation, as cases that pass or fail.
//
// A transport, of this module or of anybody else, runs it from a test of its own:
//
//	func TestConformance(t *testing.T) {
//		transporttest.Run(t, openPair, transporttest.Options{})
//	}
//
// openPair opens two fresh ends for each case: the initiator's transport and the target's, each with a region table.
// Both live in the process of the test, so that the suite can look at the memory of both. The suite takes the place of
// the engine: it registers and attaches memory, dials, hands out chunks from a source of its own, and closes both
// transports at the end of the case. Hooks say how the target is killed or frozen. docs/how-to/write-a-transport.md
// shows a whole transport and says what each group of cases demands.
//
// The source is strict. It hands out memory with a known content and looks at both ends within each Done: what counts as
// done has to be there. Then it poisons the local memory. At the end of a case, when everything has come to rest, the
// poison must be untouched, nothing of it may have reached the peer, the bytes around each range must be as they were,
// and no goroutine, descriptor or lease may be left.
//
// Invariants: a case fails by a demand that it names, says what happened instead and where to read more; it is skipped
// for a capability that Options.Without says the transport does not have, with the reason, and for nothing else but
// allocations under the race detector and operations that the transport does not offer; each case stands by itself.
// Cases run one after the other, because some count the goroutines of the process: let no other test run beside them.
//
// Goroutines: those of a case that submit, wait or close beside it; all have ended when the case has, unless the
// transport blocks them for ever, which fails the case.
package transporttest
