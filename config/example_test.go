package config_test

import (
	"fmt"

	"github.com/moonpath-io/moonpath/config"
)

func ExampleResolve() {
	environment := map[string]string{"MC_TCP_LANES_PER_PEER": "2", "MC_TCP_STATUS_TIMEOUT_SEC": "soon"}
	env := func(name string) (string, bool) {
		text, ok := environment[name]
		return text, ok
	}
	flags := config.Layer{Source: config.Flag, Values: map[string]string{"tcp.connect_timeout": "500ms"}}

	values, warnings, err := config.Resolve(config.TCP, env, flags)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(values.Int("tcp.lanes"), values.Duration("tcp.connect_timeout"), values.Duration("tcp.status_timeout"))
	for _, w := range warnings {
		fmt.Println(w)
	}
	// Output:
	// 2 500ms 30s
	// MC_TCP_STATUS_TIMEOUT_SEC: "soon" is not a plain number in units of 1s (at least 1ms): tcp.status_timeout stays at 30s
}
