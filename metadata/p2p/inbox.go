package p2p

import "sync"

// Bounds of the queue of received notifications.
const (
	maxNotifications     = 65536
	maxNotificationBytes = 64 << 20
)

// Notification is a short message between engines, such as the news that a transfer is complete. What
// a peer sent is not necessarily UTF-8.
type Notification struct {
	Name, Text string
}

// inbox keeps received notifications in the order of arrival until they are collected.
type inbox struct {
	maxMessages, maxBytes int

	mu       sync.Mutex
	messages []Notification
	bytes    int
}

func newInbox() *inbox { return &inbox{maxMessages: maxNotifications, maxBytes: maxNotificationBytes} }

// put returns false if the message does not fit.
func (b *inbox) put(m Notification) bool {
	size := len(m.Name) + len(m.Text)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.messages) == b.maxMessages || size > b.maxBytes-b.bytes {
		return false
	}
	b.messages = append(b.messages, m)
	b.bytes += size
	return true
}

func (b *inbox) drain() []Notification {
	b.mu.Lock()
	defer b.mu.Unlock()
	messages := b.messages
	b.messages, b.bytes = nil, 0
	return messages
}

func (b *inbox) len() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(len(b.messages))
}

// Notifications returns what has arrived since the last call, oldest first, and empties the queue. The
// queue holds up to 65,536 messages and 64 MiB of text; beyond that, senders are refused.
func (n *Node) Notifications() []Notification { return n.inbox.drain() }
