package obs

import (
	"fmt"
	"sync"
	"time"
)

// Kinds of events that the engine records. Others may be used.
const (
	Decision = "decision" // a path was chosen; subject is the segment
	Route    = "route"    // a route opened, changed state or ended
	Failure  = "failure"  // a task failed
)

// Event is one entry of a [Recorder].
type Event struct {
	When    time.Time
	Kind    string
	Subject string // what it is about: a segment, a route, a task
	Detail  any    // as recorded, so that a reader can ask for more than its text
}

// Text formats the detail: its String or Error method where it has one. Formatting happens
// here, when somebody reads, and not when the event was recorded.
func (e Event) Text() string { return fmt.Sprint(e.Detail) }

// Recorder keeps the last events in a ring. All methods may be called from any goroutine.
// Recording does not allocate beyond what the caller's detail does, but takes a lock: it is
// meant for decisions and failures, not for requests.
type Recorder struct {
	mu    sync.Mutex
	ring  []Event
	total uint64
}

// NewRecorder returns a recorder for the last size events, at least one.
func NewRecorder(size int) *Recorder {
	return &Recorder{ring: make([]Event, max(size, 1))}
}

// Record adds an event, in place of the oldest one if the ring is full. detail is formatted
// later, by another goroutine, so it must not change any more.
func (r *Recorder) Record(kind, subject string, detail any) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring[r.total%uint64(len(r.ring))] = Event{now, kind, subject, detail}
	r.total++
}

// Events returns what the ring holds, in the order of recording.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := uint64(len(r.ring))
	if r.total <= size {
		return append([]Event(nil), r.ring[:r.total]...)
	}
	oldest := r.total % size
	return append(append([]Event(nil), r.ring[oldest:]...), r.ring[:oldest]...)
}

// Total returns how many events were ever recorded; those that Events lacks are gone.
func (r *Recorder) Total() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}
