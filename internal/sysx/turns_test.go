package sysx

import (
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// calm ends what Hurry began.
func calm() {
	Relax()
	Relax()
}

func TestATetherKeepsAGoroutineOnItsThreadWhileSmallRequestsAreAbout(t *testing.T) {
	calm()
	defer calm()
	var tether Tether
	tether.Follow()
	if tether.tied {
		t.Fatal("tied although nobody hurries")
	}
	Hurry()
	tether.Follow()
	defer tether.Free()
	thread := unix.Gettid()
	var others sync.WaitGroup
	var shared atomic.Bool
	ping, pong := make(chan struct{}), make(chan struct{})
	for range 4 {
		others.Go(func() {
			for range ping {
				if unix.Gettid() == thread {
					shared.Store(true)
				}
				pong <- struct{}{}
			}
		})
	}
	for range 1000 { // each of them parks this goroutine
		ping <- struct{}{}
		<-pong
		if got := unix.Gettid(); got != thread {
			t.Fatalf("on thread %d, was on %d", got, thread)
		}
	}
	close(ping)
	others.Wait()
	if shared.Load() {
		t.Error("others ran on its thread")
	}
	calm()
	tether.Follow()
	if tether.tied {
		t.Error("still tied although nobody hurries")
	}
}

func TestCallsAreShorterWhileSmallRequestsAreAbout(t *testing.T) {
	calm()
	defer calm()
	if got := CallBytes(4096); got != 4096 {
		t.Errorf("%d, want all", got)
	}
	Hurry()
	if got := CallBytes(4096); got >= 4096 || got <= 0 {
		t.Errorf("%d, want less than all", got)
	}
}
