package moonpath_test

import (
	"sync"
	"testing"

	"github.com/moonpath-io/moonpath"
)

// TestInstallingATransportFromManyGoroutinesOpensItOnce leaves no second data port behind, and no error.
func TestInstallingATransportFromManyGoroutinesOpensItOnce(t *testing.T) {
	for range 20 {
		e := openEngine(t, func(o *moonpath.Options) { o.Transports = []string{} })
		got := make([]any, 8)
		var group sync.WaitGroup
		for i := range got {
			group.Go(func() {
				tr, err := e.InstallTransport("tcp")
				if err != nil {
					t.Error(err)
				}
				got[i] = tr
			})
		}
		group.Wait()
		for i := range got {
			if got[i] != got[0] {
				t.Fatalf("callers 0 and %d got different transports", i)
			}
		}
	}
}
