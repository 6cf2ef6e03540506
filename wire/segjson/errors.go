package segjson

import "errors"

// ErrNotAvailable says that the peer has no descriptor to give, at least not
// yet: it sent null, something else that is no object, or one without protocol.
var ErrNotAvailable = errors.New("segjson: descriptor not available; " +
	"check the segment's name, and try again once the peer has finished starting")

// FieldError says which field of a descriptor is wrong.
type FieldError struct {
	Field string // such as "buffers[3].addr"
	Want  string
	Have  string
}

// Error implements error.
func (e *FieldError) Error() string {
	return "segjson: descriptor field " + e.Field + ": want " + e.Want + ", have " + e.Have +
		"; the engine that published it has to be corrected"
}
