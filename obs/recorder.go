package obs

import (
	"fmt"
	"sync"
	"time"
)

// Kinds of events that the engine records. Others may be used.
const (
	Decision  = "decision"  // another path was chosen than the last time, or for the first time; subject is the segment
	Downgrade = "downgrade" // as decision, and the path is dearer than the last one; subject is the segment
	Route     = "route"     // a route opened, or did not; subject is the segment
	Peer      = "peer"      // the peer was restarted or replaced; subject is the segment
	Failure   = "failure"   // tasks ended otherwise than completed; subject is the segment
)

// Event is one entry of a [Recorder].
type Event struct {
	When    time.Time
	Kind    string
	Subject string    // what it is about: a segment
	Detail  any       // as recorded, so that a reader can ask for more than its text
	Times   int       // how often in a row; Detail is that of the first
	Last    time.Time // when it happened last
}

// Text formats the detail: its String or Error method where it has one. Formatting happens
// here, when somebody reads, and not when the event was recorded.
func (e Event) Text() string { return fmt.Sprint(e.Detail) }

// Recorder keeps the last events in a ring. All methods may be called from any goroutine.
// Recording does not allocate beyond what the caller's detail does, but takes a lock: it is
// meant for decisions and failures, not for requests.
type Recorder struct {
	mu    sync.Mutex
	ring  []entry
	total uint64 // entries ever made
}

// entry is an event with what it takes for the next one to be another of its kind.
type entry struct {
	Event
	group string
}

// NewRecorder returns a recorder for the last size events, at least one.
func NewRecorder(size int) *Recorder {
	return &Recorder{ring: make([]entry, max(size, 1))}
}

// Record adds an event, in place of the oldest one if the ring is full. detail is formatted
// later, by another goroutine, so it must not change any more.
func (r *Recorder) Record(kind, subject string, detail any) {
	r.RecordLike(kind, subject, "", detail)
}

// RecordLike is Record for what may come in floods: if the newest event has the same kind, subject and
// group, which is not empty, it is counted there, so that a thousand failures do not push out what led to them.
func (r *Recorder) RecordLike(kind, subject, group string, detail any) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	size := uint64(len(r.ring))
	if r.total > 0 && group != "" {
		newest := &r.ring[(r.total-1)%size]
		if newest.group == group && newest.Kind == kind && newest.Subject == subject {
			newest.Times++
			newest.Last = now
			return
		}
	}
	r.ring[r.total%size] = entry{Event{When: now, Kind: kind, Subject: subject, Detail: detail, Times: 1, Last: now}, group}
	r.total++
}

// Events returns what the ring holds, in the order of recording.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := uint64(len(r.ring))
	kept := min(r.total, size)
	var events []Event
	for i := r.total - kept; i < r.total; i++ {
		events = append(events, r.ring[i%size].Event)
	}
	return events
}

// Total returns how many events were ever recorded, those counted at another one aside; those that Events lacks are
// gone.
func (r *Recorder) Total() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}
