package obs_test

import (
	"fmt"

	"github.com/moonpath-io/moonpath/obs"
)

func Example() {
	engine := obs.NewGroup()
	lane := engine.Group("tcp").Group("127.0.0.1:15001").Group("lane0")
	bytes := lane.Counter("bytes") // kept by the lane, so that its hot path looks nothing up

	bytes.Add(65536)
	bytes.Add(65536)

	for _, s := range engine.Snapshot() {
		fmt.Println(s.Path, s.Name, s.Value)
	}
	// Output:
	// tcp/127.0.0.1:15001/lane0 bytes 131072
}
