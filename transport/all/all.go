package all

import (
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/transport/local"
	"github.com/moonpath-io/moonpath/transport/tcp"
)

// Factories returns the transports in the order of preference among equals.
func Factories() []transport.Factory {
	return []transport.Factory{
		local.Factory(),
		tcp.Factory(),
	}
}
