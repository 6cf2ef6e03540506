package main

import (
	"sync/atomic"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

// tally counts tasks by how they ended.
type tally struct {
	submitted                            atomic.Int64 // set by who submits; the others are added to when a task has ended
	completed, failed, canceled, timeout atomic.Int64
	invalid                              atomic.Int64 // ended in a state that is no end
	unconfirmed, unknown                 atomic.Int64 // of those above
	bytes                                atomic.Int64 // of completed tasks
}

// counts are the numbers of a tally.
type counts struct {
	Completed   int64 `json:"completed"`
	Failed      int64 `json:"failed"`
	Canceled    int64 `json:"canceled"`
	Timeout     int64 `json:"timeout"`
	Invalid     int64 `json:"invalid"`
	Unconfirmed int64 `json:"unconfirmed"`
	Unknown     int64 `json:"unknown"`
	Bytes       int64 `json:"bytes"`
}

func (t *tally) add(s moonpath.Status) {
	switch s.State {
	case xfer.Completed:
		t.completed.Add(1)
		t.bytes.Add(int64(s.Bytes))
	case xfer.Failed:
		t.failed.Add(1)
	case xfer.Canceled:
		t.canceled.Add(1)
	case xfer.Timeout:
		t.timeout.Add(1)
	default:
		t.invalid.Add(1)
	}
	switch s.Remote {
	case xfer.Unconfirmed:
		t.unconfirmed.Add(1)
	case xfer.Unknown:
		t.unknown.Add(1)
	}
}

func (t *tally) counts() counts {
	return counts{t.completed.Load(), t.failed.Load(), t.canceled.Load(), t.timeout.Load(), t.invalid.Load(),
		t.unconfirmed.Load(), t.unknown.Load(), t.bytes.Load()}
}

// ended is the number of tasks that have come to one of the ends.
func (c counts) ended() int64 { return c.Completed + c.Failed + c.Canceled + c.Timeout + c.Invalid }
