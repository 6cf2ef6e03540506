package tcp

//moonpath:hot

import "github.com/moonpath-io/moonpath/transport"

// When a peer ends a connection without saying which request is the reason, all that it had not answered are sent again:
// in trials, with nothing else on the lane. A trial that is answered doubles the window of the next; one whose connection
// ends halves it, until few enough are left to be tried by themselves, on the serial connection. So one bad request
// among hundreds costs some connections, and not one exchange for each of its neighbours.

// maxTrial and minTrial bound the window. What is left of a trial of minTrial requests goes to the serial connection.
const (
	maxTrial = takeBatch
	minTrial = 4
)

// takeTrial takes a trial for a lane that is idle. It bars the lane for everything else while one is under way.
// pumpMu is held.
func (l *lane) takeTrial(room int) (n int, bars bool) {
	if l.trial {
		if !l.idle() {
			return 0, true
		}
		l.trial = false
		l.r.window.Store(min(2*l.r.window.Load(), maxTrial))
	}
	if l.r.retry.empty() || !l.idle() || !l.wants().Has(transport.Bulk) {
		return 0, false
	}
	n = l.r.retry.take(l.works[:min(room, int(max(l.r.window.Load(), minTrial)))])
	l.trial = n > 0
	return n, false
}

// try puts what a connection left unanswered where it is sent again: into trials, or to the serial connection if it is
// little. It reports whether the serial connection has work.
func (r *route) try(left []work) (alone bool) {
	small := len(left) <= minTrial
	for i := range left {
		left[i].sent = true
		if small {
			left[i].attempts++
		}
	}
	if small {
		r.alone.put(left...)
		return len(left) > 0
	}
	r.window.Store(int64(min(len(left)/2, maxTrial)))
	r.retry.put(left...)
	return false
}
