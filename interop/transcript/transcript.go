package transcript

// Transcript is one recorded conversation.
type Transcript struct {
	About     string
	Notes     []string
	Initiator string
	Target    string
	Settings  []string // of the initiator, NAME=value
	Strings   []String
	Numbers   []Number
	Regions   []Region
	Calls     []Call
	Events    []Event
	After     []Memory
}

// String is a symbol whose value is text.
type String struct {
	Name  string
	Value string // as recorded
}

// Number is a symbol whose value is a number.
type Number struct {
	Name  string
	Value uint64 // as recorded
}

// Region is memory that the target has registered. Its symbol stands for the address.
type Region struct {
	Name   string
	Addr   uint64 // as recorded
	Length uint64
	Seed   uint64 // the memory holds pattern.Bytes(Seed, Length) before the first event
}

// Ref is a place relative to a symbol.
type Ref struct {
	Symbol string
	Offset int64
}

// Verb is what a caller asks an initiator for.
type Verb string

// The verbs of a Call.
const (
	Open   Verb = "open"   // fetch the target's descriptor
	Probe  Verb = "probe"  // ask whether the target is alive
	Write  Verb = "write"  // move Payload to At
	Read   Verb = "read"   // move Length bytes from At
	Notify Verb = "notify" // send a message, here after the transfer before it
)

// Call is one request of the initiator's caller and its result.
type Call struct {
	Verb    Verb
	At      Ref     // of Write and Read
	Payload Message // of Write
	Length  uint64  // of Read
	Name    string  // of Notify
	Text    string  // of Notify
	Code    int     // what the initiator returned: 0 is success
}

// Role is a side of the conversation.
type Role int

// The two roles. The initiator opens all connections.
const (
	Initiator Role = iota
	Target
)

func (r Role) String() string {
	if r == Initiator {
		return "initiator"
	}
	return "target"
}

// Port is one of the two ports of a target.
type Port string

// The ports of a target.
const (
	Control Port = "control"
	Data    Port = "data"
)

// Kind says what happened in an Event.
type Kind int

// The kinds of an Event.
const (
	Opened Kind = iota // the initiator opened the connection, to Port
	Sent               // From sent Message
	Ended              // From sends nothing more on this connection
	Reset              // From ended the connection abruptly
)

// Event is one step of the conversation.
type Event struct {
	Conn    int // from 1, in the order of opening
	Kind    Kind
	Port    Port    // of Opened
	From    Role    // of the others
	Message Message // of Sent
}

// Memory is what a part of the target's memory held in the end.
type Memory struct {
	At      Ref
	Content Message
}

// Bindings gives a value to every symbol: numbers and the addresses of regions in Numbers, texts in Strings.
type Bindings struct {
	Numbers map[string]uint64
	Strings map[string]string
}

// Recorded returns the values that the symbols had in the recording. The caller owns the maps and may change them.
func (t *Transcript) Recorded() Bindings {
	b := Bindings{Numbers: map[string]uint64{}, Strings: map[string]string{}}
	for _, s := range t.Strings {
		b.Strings[s.Name] = s.Value
	}
	for _, n := range t.Numbers {
		b.Numbers[n.Name] = n.Value
	}
	for _, r := range t.Regions {
		b.Numbers[r.Name] = r.Addr
	}
	return b
}

// Value returns the number that r stands for under b.
func (r Ref) Value(b Bindings) (uint64, error) {
	base, ok := b.Numbers[r.Symbol]
	if !ok {
		return 0, &UnboundSymbol{Symbol: r.Symbol}
	}
	return base + uint64(r.Offset), nil
}
