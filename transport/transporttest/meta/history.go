package meta

import (
	"fmt"
	"strings"
	"time"

	"github.com/moonpath-io/moonpath/xfer"
)

// Side is one of the two engines.
type Side uint8

const (
	// Local is the engine that submits requests.
	Local Side = iota
	// Remote is the target.
	Remote
)

// String returns the side's name in histories.
func (s Side) String() string {
	if s == Remote {
		return "remote"
	}
	return "local"
}

// Place is a byte of a slot of memory.
type Place struct {
	Slot int
	Off  uint64
}

// Request is one transfer between a local and a remote slot.
type Request struct {
	Op     xfer.Op
	Local  Place
	Remote Place
	Len    uint64
}

// String returns the request's form in histories.
func (r Request) String() string {
	return fmt.Sprintf("%s L%d+%d R%d+%d %d", r.Op, r.Local.Slot, r.Local.Off, r.Remote.Slot, r.Remote.Off, r.Len)
}

// Kind is what a step does.
type Kind uint8

// The kinds of steps.
const (
	Register   Kind = iota // a slot of a side
	Unregister             // a slot of a side; waits for what uses it
	Submit                 // requests as a new batch
	Wait                   // for the end of a batch; if the peer is frozen it is cancelled first
	Cancel                 // a batch, without waiting
	CloseBatch             // cancel and wait until local memory is quiet
	Do                     // one transfer, synchronously, within Limit if that is not 0
	Pause                  // for Limit
	Freeze                 // the peer: nothing gets through any more
	Thaw                   // what was frozen
	Cut                    // all connections to the peer
	Look                   // compare all memory with the model
)

var kindNames = [...]string{"register", "unregister", "submit", "wait", "cancel", "close", "do", "pause", "freeze", "thaw", "cut", "look"}

// String returns the kind's name in histories.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "?"
}

// Step is one call, or one thing that happens to the connection.
type Step struct {
	Kind     Kind
	Side     Side
	Slot     int
	Batch    int
	Requests []Request
	Limit    time.Duration
}

// String returns the step's form in histories.
func (s Step) String() string {
	switch s.Kind {
	case Register, Unregister:
		return fmt.Sprintf("%s %s %d", s.Kind, s.Side, s.Slot)
	case Wait, Cancel, CloseBatch:
		return fmt.Sprintf("%s b%d", s.Kind, s.Batch)
	case Submit:
		return fmt.Sprintf("%s b%d %s", s.Kind, s.Batch, join(s.Requests))
	case Do:
		if s.Limit > 0 {
			return fmt.Sprintf("%s %s %v", s.Kind, join(s.Requests), s.Limit)
		}
		return fmt.Sprintf("%s %s", s.Kind, join(s.Requests))
	case Pause:
		return fmt.Sprintf("%s %v", s.Kind, s.Limit)
	}
	return s.Kind.String()
}

func join(rs []Request) string {
	texts := make([]string, len(rs))
	for i, r := range rs {
		texts[i] = r.String()
	}
	return strings.Join(texts, ", ")
}

// History is a list of steps. Seed decides the content of memory.
type History struct {
	Seed  uint64
	Steps []Step
}

// String returns the history as text that Parse reads.
func (h History) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d", h.Seed)
	for _, s := range h.Steps {
		b.WriteString("; ")
		b.WriteString(s.String())
	}
	return b.String()
}
