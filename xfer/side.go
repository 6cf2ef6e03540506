package xfer

import "syscall"

// Side says who has to change something before a request that failed can succeed.
type Side string

// The sides of a disagreement.
const (
	SideCaller   Side = "caller"   // this program: the request, or the order of its calls
	SideHere     Side = "here"     // this engine: its settings, its build, its host
	SidePeer     Side = "peer"     // the peer's deployment
	SideNetwork  Side = "network"  // what lies between the two
	SideMetadata Side = "metadata" // the description of the peer: it is not, or not any more, that of who answers
)

// Sides lists them all.
func Sides() []Side { return []Side{SideCaller, SideHere, SidePeer, SideNetwork, SideMetadata} }

// MustChange returns the side that has to change something. It is Side where that is known, else what the error
// number says, else what most often is behind the code; it is empty only for an unknown code.
func (f *Fault) MustChange() Side {
	if f.Side != "" {
		return f.Side
	}
	switch f.Errno() {
	case syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE:
		return SidePeer
	case syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ENETDOWN, syscall.ETIMEDOUT:
		return SideNetwork
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EADDRINUSE, syscall.EADDRNOTAVAIL, syscall.EACCES, syscall.EPERM:
		return SideHere
	}
	return f.Code.Side()
}

// Side returns the side that most often has to change something after an error with this code.
func (c Code) Side() Side {
	if r := c.row(); r != nil {
		return r.side
	}
	return ""
}
