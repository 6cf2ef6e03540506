package tcp

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/moonpath-io/moonpath/wire/tcpframe"
)

// sockets counts the sockets of the process.
func sockets(t testing.TB) (n int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

func TestGoroutinesAreAFunctionOfLanesAndNotOfRequests(t *testing.T) {
	release := make(chan struct{})
	g := &target{version: 2, incarnation: 7, before: func(tcpframe.Header) bool { <-release; return true }}
	_, d := g.start(t)
	h := openHost(t)
	m := h.memory(1<<20, false)
	_, s := h.dial(d)
	// One request per lane brings all of them up.
	first := []*task{write(m, 0, 1<<20, remoteBase), write(m, 0, 1<<20, remoteBase), write(m, 0, 1<<20, remoteBase), write(m, 0, 100, remoteBase)}
	for range 50 {
		first = append(first, write(m, 0, 1<<20, remoteBase))
	}
	s.submit(first...)
	eventually(t, "all lanes are up", func() bool {
		s.route.Kick()
		for _, l := range s.route.lanes {
			if !l.up.Load() {
				return false
			}
		}
		return true
	})
	before := runtime.NumGoroutine()
	var ks []*task
	for i := range uint64(1000) {
		ks = append(ks, write(m, 8*i, 8, remoteBase+8*i), read(m, 1<<19, 20000, remoteBase))
	}
	s.submit(ks...)
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines with 2000 requests more, %d before", after, before)
	}
	close(release)
	s.finish(first...)
	s.finish(ks...)
}
