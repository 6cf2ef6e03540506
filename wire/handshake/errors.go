package handshake

// FieldError says which field of a message is wrong.
type FieldError struct {
	Field string
	Want  string
	Have  string
}

// Error implements error.
func (e *FieldError) Error() string {
	return "handshake: " + e.Field + ": want " + e.Want + ", have " + e.Have + "; the sender has to be corrected"
}
