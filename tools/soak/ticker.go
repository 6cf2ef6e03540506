package main

import (
	"sync"
	"time"
)

// everySeconds calls f again and again until stop is called, which waits for a call under way.
func everySeconds(n int, f func()) (stop func()) {
	end := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(time.Duration(n) * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f()
			case <-end:
				return
			}
		}
	})
	return func() { close(end); running.Wait() }
}
