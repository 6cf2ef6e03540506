package fault_test

import (
	"fmt"
	"io"
	"net"

	"github.com/moonpath-io/moonpath/transport/fault"
)

// The answer of this server is cut after four bytes, in order, as if its process had ended.
func ExampleListen() {
	server, _ := net.Listen("tcp", "127.0.0.1:0")
	defer server.Close()
	go func() {
		c, err := server.Accept()
		if err != nil {
			return
		}
		fmt.Fprint(c, "moonlight")
		io.Copy(io.Discard, c)
		c.Close()
	}()

	plan, err := fault.NewPlan(1, fault.StreamRule{Do: fault.Finish, Direction: fault.ToClient, At: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	proxy, err := fault.Listen(server.Addr().String(), plan)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer proxy.Close()

	c, err := net.DialTCP("tcp", nil, proxy.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	got, err := io.ReadAll(c)
	fmt.Printf("%s %v\n", got, err)
	// Output: moon <nil>
}
