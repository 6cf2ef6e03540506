package cxx

import "fmt"

// CallFailed is a code other than success, returned by a call of the engine that otherwise worked.
type CallFailed struct {
	Call string
	Code int
}

func (e *CallFailed) Error() string {
	return fmt.Sprintf("C++ engine: %s returned %d", e.Call, e.Code)
}

// Raised is a Python exception out of the engine or out of the peer program.
type Raised struct {
	Call string
	Text string
}

func (e *Raised) Error() string {
	return fmt.Sprintf("C++ engine: %s raised %s", e.Call, e.Text)
}

// PeerGone means that the peer's process has ended, or was ended because a call met its deadline. It is the result of the
// calls under way then and of all later ones.
type PeerGone struct {
	Call   string
	Reason string
	Stderr string // the last of what the process wrote there
}

func (e *PeerGone) Error() string {
	return fmt.Sprintf("C++ engine: %s: %s; the end of its stderr:\n%s", e.Call, e.Reason, e.Stderr)
}
