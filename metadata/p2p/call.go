package p2p

import (
	"context"
	"errors"

	"github.com/moonpath-io/moonpath/xfer"
)

// call is what every error of one call to a peer says.
type call struct {
	stage xfer.Stage
	peer  string // the segment name
}

func (c call) fault(code xfer.Code, detail, next string, cause error) *xfer.Fault {
	return &xfer.Fault{Code: code, Stage: c.stage, Peer: c.peer, Detail: detail, Next: next, Cause: cause}
}

// failed is the fault for what went wrong while waiting: if ctx has ended, that is the reason, whatever
// the system said then.
func (c call) failed(ctx context.Context, code xfer.Code, detail string, err error) *xfer.Fault {
	switch ended := context.Cause(ctx); {
	case ended == nil:
		return c.fault(code, detail, "", err)
	case errors.Is(ended, xfer.Closed):
		return c.closed()
	case errors.Is(ended, xfer.Deadline): // the engine's own limit, not the caller's
		return c.fault(xfer.Deadline, detail, "", ended)
	default:
		return c.fault(xfer.Interrupted, detail, "", ended)
	}
}

func (c call) closed() *xfer.Fault {
	return c.fault(xfer.Closed, "this engine's control port is closed", "", nil)
}
