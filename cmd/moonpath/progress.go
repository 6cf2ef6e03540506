package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath/config"
)

const (
	progressAfter = 2 * time.Second        // shorter commands show nothing
	progressEvery = 200 * time.Millisecond // five times a second looks alive
)

// progress is one line on a terminal about what a command is doing. The zero value shows nothing.
type progress struct {
	label   atomic.Pointer[string]
	total   uint64 // bytes; 0: unknown
	done    atomic.Uint64
	started time.Time
	stop    chan struct{}
	stopped chan struct{}
}

// progress starts the line if standard error is a terminal; end must follow.
func (a *app) progress(total uint64, format string, args ...any) *progress {
	p := &progress{total: total}
	p.say(format, args...)
	if isTerminal(a.stderr) {
		p.start(a.stderr)
	}
	return p
}

func (p *progress) start(w io.Writer) {
	p.started = time.Now()
	p.stop, p.stopped = make(chan struct{}), make(chan struct{})
	go p.show(w, p.stop)
}

// say replaces what the line is about.
func (p *progress) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.label.Store(&text)
}

// add counts bytes as done.
func (p *progress) add(n uint64) { p.done.Add(n) }

// end removes the line and returns when it is gone. A second call does nothing.
func (p *progress) end() {
	if p.stop == nil {
		return
	}
	close(p.stop)
	<-p.stopped
	p.stop = nil
}

func (p *progress) show(w io.Writer, stop <-chan struct{}) {
	defer close(p.stopped)
	timer := time.NewTimer(progressAfter)
	defer timer.Stop()
	shown := false
	for {
		select {
		case <-stop:
			if shown {
				io.WriteString(w, clearLine)
			}
			return
		case <-timer.C:
			io.WriteString(w, clearLine+p.text(time.Since(p.started)))
			shown = true
			timer.Reset(progressEvery)
		}
	}
}

const clearLine = "\r\x1b[K"

func (p *progress) text(elapsed time.Duration) string {
	done, label := p.done.Load(), *p.label.Load()
	text := fmt.Sprintf("%s, %ds", label, int(elapsed.Seconds()))
	if done == 0 {
		return text
	}
	text += fmt.Sprintf(", %s at %s", config.FormatSize(done>>20<<20), rate(perSecond(done, elapsed)))
	if p.total > 0 {
		left := float64(p.total-min(done, p.total)) / perSecond(done, elapsed)
		text += fmt.Sprintf(", %d%% of %s, %ds left", done*100/p.total, config.FormatSize(p.total), int(left+0.5))
	}
	return text
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
