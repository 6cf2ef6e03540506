package xfer

// State is where a task stands, with Mooncake's numbers.
type State uint8

// The states of Mooncake's API. Canceled, Completed, Timeout and Failed are terminal.
const (
	Waiting   State = 0 // accepted, or under way
	Pending   State = 1
	Invalid   State = 2
	Canceled  State = 3
	Completed State = 4
	Timeout   State = 5
	Failed    State = 6
)

var stateNames = [...]string{"waiting", "pending", "invalid", "canceled", "completed", "timeout", "failed"}

// String returns the state's name in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Terminal reports whether nothing more will happen to the task.
func (s State) Terminal() bool { return s >= Canceled && s <= Failed }

// Certainty says what is known about the peer's memory. It qualifies a state and never replaces one.
type Certainty uint8

const (
	// Confirmed means: if completed, the bytes are there; otherwise nothing more will happen.
	Confirmed Certainty = iota
	// Unconfirmed means completed over a protocol without acknowledgement (a v1 write).
	Unconfirmed
	// Unknown means not completed, but a write may have happened or may still happen.
	Unknown
)

// String returns the certainty's name in lower case.
func (c Certainty) String() string {
	switch c {
	case Confirmed:
		return "confirmed"
	case Unconfirmed:
		return "unconfirmed"
	}
	return "unknown"
}

// Status is a copy of a task's state. Once State is terminal, local memory is quiet: nothing of this
// task touches it again.
type Status struct {
	State  State
	Remote Certainty
	Bytes  uint64 // transferred so far
	Err    error  // a *Fault, or nil
}
