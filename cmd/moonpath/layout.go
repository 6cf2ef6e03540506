package main

import (
	"fmt"

	"github.com/moonpath-io/moonpath/config"
)

// layout says which memory each thread of a measurement uses. A window is what one batch moves: block × batch bytes,
// request after request. Thread t reuses the window at t windows from the start; cold ones walk their share of the
// whole buffer instead, so that nothing is in a cache.
type layout struct {
	block         uint64
	batch         int
	threads       int
	local, remote uint64 // usable bytes on both sides
	cold          bool
}

func (l layout) window() uint64 { return l.block * uint64(l.batch) }

// needed is how many bytes of each side a measurement uses at least.
func (l layout) needed() uint64 { return l.window() * uint64(l.threads) }

// share is how many bytes of a side with that many bytes belong to one thread.
func (l layout) share(side uint64) uint64 {
	if !l.cold {
		return l.window()
	}
	return side / uint64(l.threads) / l.window() * l.window()
}

// check reports a layout that does not fit the peer's buffer.
func (l layout) check() error {
	if l.block <= l.remote/uint64(l.batch)/uint64(l.threads) {
		return nil
	}
	return usage("bench", "a block of %s, batch %d and %s need block × batch × threads bytes of the peer's memory, and %s are there: use smaller ones, or another --target-buffer",
		config.FormatSize(l.block), l.batch, plural(l.threads, "thread"), config.FormatSize(l.remote))
}

// cursor is where a thread's current window is, as offsets into both sides.
type cursor struct {
	window                  uint64
	localBase, localShare   uint64
	remoteBase, remoteShare uint64
	localAt, remoteAt       uint64
}

func (l layout) cursor(thread int) cursor {
	c := cursor{window: l.window(), localShare: l.share(l.local), remoteShare: l.share(l.remote)}
	c.localBase, c.remoteBase = uint64(thread)*c.localShare, uint64(thread)*c.remoteShare
	return c
}

// local and remote are the offsets of the current window.
func (c *cursor) local() uint64  { return c.localBase + c.localAt }
func (c *cursor) remote() uint64 { return c.remoteBase + c.remoteAt }

// advance goes to the next window; it reports whether that is another one on either side.
func (c *cursor) advance() bool {
	if c.localShare == c.window && c.remoteShare == c.window {
		return false
	}
	c.localAt = (c.localAt + c.window) % c.localShare
	c.remoteAt = (c.remoteAt + c.window) % c.remoteShare
	return true
}

// windows is how many windows the peer's share of a thread has.
func (c *cursor) windows() uint64 { return c.remoteShare / c.window }

// describe names the layout in messages and in the progress line.
func (l layout) describe() string {
	return fmt.Sprintf("%s, batch %d, %s", config.FormatSize(l.block), l.batch, plural(l.threads, "thread"))
}
