package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressAppearsAfterTwoSecondsAndGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen bytes.Buffer
		p := &progress{total: 4 << 30}
		p.say("writing to %s", "peer")
		p.start(&screen)
		wait := func(d time.Duration) { // the bubble's clock, no real time passes
			<-time.After(d)
			synctest.Wait()
		}
		wait(progressAfter - 1)
		if screen.Len() > 0 {
			t.Fatalf("shown too early: %q", screen.String())
		}
		p.add(2 << 30)
		wait(2)
		want := "writing to peer, 2s, 2GiB at 1.07 GB/s, 50% of 4GiB, 2s left"
		if got := strings.ReplaceAll(screen.String(), clearLine, ""); got != want {
			t.Errorf("shown: %q, want %q", got, want)
		}
		p.end()
		p.end()
		if !strings.HasSuffix(screen.String(), clearLine) {
			t.Errorf("the line stays: %q", screen.String())
		}
	})
}

func TestShortCommandShowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen bytes.Buffer
		p := new(progress)
		p.say("probing")
		p.start(&screen)
		p.end()
		if screen.Len() > 0 {
			t.Errorf("shown: %q", screen.String())
		}
	})
}
