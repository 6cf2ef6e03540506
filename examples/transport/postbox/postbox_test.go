package postbox_test

import (
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"github.com/moonpath-io/moonpath/examples/transport/postbox"
	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Pair {
		here, there := open("here"), open("there")
		kill := func() {
			if err := there.Transport.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		restart := func() transporttest.End {
			kill()
			return open("there")
		}
		return transporttest.Pair{Initiator: here, Target: there, Kill: kill, Restart: restart}
	}, transporttest.Options{
		Goroutines: 1, // the carrier
		Without: map[transporttest.Capability]string{
			transporttest.Freezing:   "both ends are one process, which stops and goes on as a whole",
			transporttest.StallLimit: "a clerk never stands still",
		},
	})
}

// open opens the transport as an engine does.
func open(name string) transporttest.End {
	regions, incarnation := new(mem.Table), rand.Uint64()|1
	return transporttest.End{
		Transport: postbox.Open(transport.Env{Regions: regions, Incarnation: incarnation}),
		Regions:   regions,
		Draft:     segment.Desc{Name: name, Ext: &segment.Extension{Incarnation: incarnation}},
	}
}
