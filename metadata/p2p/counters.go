package p2p

import (
	"errors"
	"io"
	"os"

	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/wire/ctrlframe"
)

// counters are what the port counts. A connection is counted once: as a request of some type, as
// rejected for some reason, or as evicted.
type counters struct {
	requests [ctrlframe.Probe + 1]*obs.Counter // by type, answered or about to be
	rejected map[ctrlframe.Kind]*obs.Counter

	timeout, empty, unanswerable *obs.Counter // rejected for reasons beyond the frame's form
	evicted                      *obs.Counter
	queued, dropped              *obs.Counter // notifications
}

// kindNames are the last parts of the counters' names.
var kindNames = map[ctrlframe.Kind]string{
	ctrlframe.Truncated:   "truncated",
	ctrlframe.TooLong:     "too_long",
	ctrlframe.Empty:       "zero_length",
	ctrlframe.NotJSON:     "not_json",
	ctrlframe.NotObject:   "not_object",
	ctrlframe.UnknownType: "unknown_type",
}

func newCounters(g *obs.Group) counters {
	c := counters{
		rejected:     make(map[ctrlframe.Kind]*obs.Counter, len(kindNames)),
		timeout:      g.Counter("rejected.timeout"),
		empty:        g.Counter("rejected.no_byte"),
		unanswerable: g.Counter("rejected.wrong_shape"),
		evicted:      g.Counter("evicted"),
		queued:       g.Counter("notifications.queued"),
		dropped:      g.Counter("notifications.dropped"),
	}
	for t := range c.requests {
		c.requests[t] = g.Counter("requests." + ctrlframe.Type(t).String())
	}
	for kind, name := range kindNames {
		c.rejected[kind] = g.Counter("rejected." + name)
	}
	return c
}

// reject counts a connection that brought no complete request.
func (c *counters) reject(err error) {
	var bad *ctrlframe.Error
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.timeout.Add(1)
	case errors.As(err, &bad):
		c.rejected[bad.Kind].Add(1)
	case errors.Is(err, io.EOF):
		c.empty.Add(1)
	}
}
