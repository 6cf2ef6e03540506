package local

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/moonpath-io/moonpath/mem"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/transporttest"
)

func TestConformance(t *testing.T) {
	transporttest.Run(t, func(*testing.T) transporttest.Pair {
		here, there := conformingEnd("here"), conformingEnd("there")
		leave := there.Transport.(*Transport).leave
		return transporttest.Pair{Initiator: here, Target: there, Kill: leave, Restart: func() transporttest.End {
			leave()
			return conformingEnd("there")
		}}
	}, transporttest.Options{
		Goroutines: 1,
		Without: map[transporttest.Capability]string{
			transporttest.Freezing:   "both ends are one process, which stops and goes on as a whole",
			transporttest.StallLimit: "a copy within a process does not wait for anybody",
		},
	})
}

// leave is the end of an engine, as the engines that live on see it.
func (t *Transport) leave() { _ = t.Close(context.Background()) }

func conformingEnd(name string) transporttest.End {
	regions, own := new(mem.Table), rand.Uint64()|1
	return transporttest.End{
		Transport: Open(transport.Env{Regions: regions, Incarnation: own}),
		Regions:   regions,
		Draft:     segment.Desc{Name: name, Ext: &segment.Extension{Incarnation: own}},
	}
}
