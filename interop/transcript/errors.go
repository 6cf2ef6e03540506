package transcript

import "fmt"

// SyntaxError says which line of a file is no transcript and why.
type SyntaxError struct {
	Line    int // from 1; 0 for the file as a whole
	Problem string
}

func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return "transcript: " + e.Problem
	}
	return fmt.Sprintf("transcript: line %d: %s", e.Line, e.Problem)
}

// UnboundSymbol means that the bindings lack a value.
type UnboundSymbol struct{ Symbol string }

func (e *UnboundSymbol) Error() string {
	return fmt.Sprintf("transcript: symbol %s has no value in the bindings", e.Symbol)
}

// Mismatch means that the live side did something else than the recorded one.
type Mismatch struct {
	Event   int // index in Transcript.Events
	Conn    int
	From    Role
	Problem string
	Cause   error // of the network, or nil
}

func (e *Mismatch) Error() string {
	text := fmt.Sprintf("transcript: event %d, connection %d, expected from the %s: %s", e.Event, e.Conn, e.From, e.Problem)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

func (e *Mismatch) Unwrap() error { return e.Cause }
