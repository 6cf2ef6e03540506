package multi

import (
	"slices"

	"github.com/moonpath-io/moonpath/selector"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// Codes of reasons (docs/reference/disagreements.md).
const (
	reasonInstalled   = "installed"   // the transport is not installed in this engine
	reasonProtocol    = "protocol"    // the peer does not offer it
	reasonEndpoint    = "endpoint"    // the peer offers it and says nothing usable about where
	reasonProcess     = "process"     // the peer is not in this process
	reasonPin         = "pin"         // the request insists on another one
	reasonLocal       = "local"       // the local range is not registered
	reasonRemote      = "remote"      // the peer has published no buffer that holds the remote range
	reasonBuffer      = "buffer"      // the peer's buffer is served over other protocols
	reasonDescription = "description" // the peer refuses what its description has
	reasonControl     = "control"     // whether the peer's control port answers
)

// knownReasons are side and next step of the reasons that transports give without.
var knownReasons = map[string]struct {
	side xfer.Side
	next string
}{
	reasonProtocol: {xfer.SidePeer, "install the transport at the peer; moonpath segment NAME shows what it offers"},
	reasonEndpoint: {xfer.SidePeer, "the peer offers the transport without saying where: correct its host and port settings and restart it"},
	reasonProcess:  {xfer.SidePeer, "use another path: this one serves engines of one process only"},
}

// attributed returns the reasons with side and next step. What it is given may be shared, and is not changed.
func attributed(reasons []transport.Reason) []transport.Reason {
	out := slices.Clone(reasons)
	for i := range out {
		known, ok := knownReasons[out[i].Code]
		if !ok {
			known.side = xfer.SideHere // what a transport lacks, it lacks here
		}
		if out[i].Side == "" {
			out[i].Side = known.side
		}
		if out[i].Next == "" {
			out[i].Next = known.next
		}
	}
	return out
}

// notInstalled is the reason of a transport that this engine does not have. One that no setting can bring is the
// business of whoever asked for it: the peer that offers it, or the request.
func notInstalled(name string, a transport.Availability, offered bool) transport.Reason {
	r := transport.Reason{Code: reasonInstalled, Want: name, Have: a.Reason, Side: xfer.SideHere, Next: a.Next}
	if r.Next == "" {
		r.Next = "run moonpath info to see what the transport needs on this host"
	}
	switch {
	case a.State == transport.Ready:
		r.Have, r.Next = "not installed", "install it here: InstallTransport, or name it in Options.Transports"
	case a.Code != "not-built" && a.Code != "unknown":
	case offered:
		r.Side, r.Next = xfer.SidePeer, "install a transport at the peer that this engine has, such as tcp"
	default:
		r.Side = xfer.SideCaller
	}
	return r
}

// maxReasons bounds the rows that one fault lists.
const maxReasons = 16

// noRoute is one error with all reasons. Side and next step are those of the path that is nearest to being usable.
func noRoute(name string, d *selector.Decision) *xfer.Fault {
	if len(d.Rows) == 0 {
		return &xfer.Fault{Code: xfer.NotSupportedTransport, Stage: xfer.StageSelect, Path: d.Pin, Peer: name, Side: xfer.SideHere,
			Detail: "no transport is installed and the peer offers none"}
	}
	text := ""
	for i, r := range d.Rows {
		if i == maxReasons {
			text += "; and more"
			break
		}
		if i > 0 {
			text += "; "
		}
		text += rejectedText(r)
	}
	side, next := toChange(d)
	return &xfer.Fault{Code: xfer.NotSupportedTransport, Stage: xfer.StageSelect, Path: d.Pin, Peer: name, Side: side, Detail: text, Next: next}
}

func rejectedText(r selector.Explained) string {
	text := r.Path
	for j, why := range r.Rejected {
		if j == 0 {
			text += " ("
		} else {
			text += ", "
		}
		text += why.String()
	}
	if len(r.Rejected) > 0 {
		text += ")"
	}
	return text
}

// toChange says who has to change what before one of the rows of a decision can be used.
func toChange(d *selector.Decision) (xfer.Side, string) {
	if d.Pin != "" && slices.ContainsFunc(d.Rows, onlyPinned) {
		return xfer.SideCaller, "submit the request without insisting on " + d.Pin + ", or see moonpath explain --segment NAME --transport " + d.Pin
	}
	var nearest *selector.Explained
	for i := range d.Rows {
		r := &d.Rows[i]
		if d.Pin != "" && r.Path != d.Pin {
			continue
		}
		if nearest == nil || distance(r) < distance(nearest) {
			nearest = r
		}
	}
	if nearest == nil || len(nearest.Rejected) == 0 {
		return xfer.SideHere, ""
	}
	why := nearest.Rejected[0]
	return why.Side, why.Next
}

// onlyPinned reports whether nothing but the request's wish speaks against a row.
func onlyPinned(r selector.Explained) bool {
	return len(r.Rejected) == 1 && r.Rejected[0].Code == reasonPin
}

// distance orders rows by what it would take to use them: least if the peer offers the transport, most if only another
// process layout could.
func distance(r *selector.Explained) int {
	far := len(r.Rejected)
	for _, why := range r.Rejected {
		switch why.Code {
		case reasonProtocol:
			far += 10
		case reasonProcess:
			far += 100
		}
	}
	return far
}
