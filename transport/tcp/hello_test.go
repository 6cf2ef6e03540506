package tcp

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/moonpath-io/moonpath/wire/tcpframe"
)

func TestHelloIsAnswered(t *testing.T) {
	h := openHost(t)
	own := h.env.Incarnation
	accepted := tcpframe.HelloAnswer{Code: tcpframe.OK, Incarnation: own, Version: 1}
	draining := accepted
	draining.Features, draining.DrainLimit = tcpframe.FeatureDrain, drainLimit
	for _, x := range []struct {
		name  string
		hello []byte
		want  tcpframe.HelloAnswer
	}{
		{"with drain", helloFrame(own, 1, 1, tcpframe.FeatureDrain), draining},
		{"without drain", helloFrame(own, 1, 1, 0), accepted},
		{"with features nobody knows", helloFrame(own, 1, 1, 0xffff), draining},
		{"with a newer version too", helloFrame(own, 200, 1, 0), accepted},
		{"for another process", helloFrame(own^2, 1, 1, 1), tcpframe.HelloAnswer{Code: tcpframe.WrongIncarnation, Incarnation: own}},
		{"for another process, of another version", helloFrame(own^2, 9, 7, 1), tcpframe.HelloAnswer{Code: tcpframe.WrongIncarnation, Incarnation: own}},
		{"of newer versions only", helloFrame(own, 9, 7, 1), tcpframe.HelloAnswer{Code: tcpframe.VersionRejected, Incarnation: own}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := h.clientOf(t)
			c.send(x.hello)
			c.expect(helloAnswer(x.want))
			if x.want.Code != tcpframe.OK {
				c.expectEnd()
			}
		})
	}
}

func TestAMalformedHelloIsAnUnknownOpcode(t *testing.T) {
	h := openHost(t)
	for name, spoil := range map[string]func(f []byte){
		"size":           func(f []byte) { f[0] = 1 },
		"magic":          func(f []byte) { f[17] = 'm' },
		"magic 2":        func(f []byte) { f[18] = 0 },
		"no incarnation": func(f []byte) { binary.LittleEndian.PutUint64(f[8:], 0) },
		"version 0":      func(f []byte) { f[20] = 0 },
		"versions":       func(f []byte) { f[19], f[20] = 1, 2 },
	} {
		c := h.client()
		f := helloFrame(h.env.Incarnation, 1, 1, 1)
		spoil(f)
		t.Log(name)
		c.send(f)
		c.expect(status(tcpframe.AddressRejected))
		c.expectEnd()
	}
}

func TestHelloCountsAtTheBeginningOnly(t *testing.T) {
	h := openHost(t)
	r := h.memory(4096, true)

	c := h.client()
	c.works(uint64(r.Addr))
	c.send(helloFrame(h.env.Incarnation, 1, 1, 1))
	c.expect(status(tcpframe.AddressRejected))
	c.expectEnd()

	c = h.client()
	c.hello(h, tcpframe.FeatureDrain)
	c.send(helloFrame(h.env.Incarnation, 1, 1, 1))
	c.expect(status(tcpframe.BadRequest))
	c.works(uint64(r.Addr))
}

func TestARejectionAfterAHelloSaysWhyAndKeepsTheConnectionInStep(t *testing.T) {
	h := openHost(t)
	r, bad := refusals(h)
	c := h.client()
	c.hello(h, tcpframe.FeatureDrain)
	for _, b := range bad {
		c.t.Log(b.name)
		c.send(frame(b.size, b.addr, v2Read))
		c.expect(status(b.code))
		if b.size <= drainLimit {
			c.send(frame(b.size, b.addr, v2Write), make([]byte, b.size))
			c.expect(status(b.code))
		}
		c.works(uint64(r.Addr))
	}
	for op := range 256 {
		op := byte(op)
		if op&tcpframe.OpV2 == 0 || op == v2Read || op == v2Write {
			continue
		}
		// Nothing but a write carries a payload: the next header follows.
		c.send(frame(4, uint64(r.Addr), op))
		c.expect(status(tcpframe.BadRequest))
	}
	c.works(uint64(r.Addr))
}

func TestPayloadsOfRejectedWritesAreDrainedUpToTheLimit(t *testing.T) {
	h := openHost(t)
	r := h.memory(4096, true)
	for _, n := range []int{1, 100, bounceBytes - 24, bounceBytes, 300000, 1 << 20} {
		c := h.client()
		c.hello(h, tcpframe.FeatureDrain)
		// The status comes at once, before the payload.
		c.send(frame(uint64(n), 1, v2Write))
		c.expect(status(tcpframe.AddressRejected))
		c.send(patterned(n, 1), readRequest(1, 5), writeRequest(uint64(r.Addr), []byte("hello")), readRequest(uint64(r.Addr), 5))
		c.expect(status(tcpframe.AddressRejected), ok, ok, []byte("hello"))
		// All in one piece.
		c.send(writeRequest(1, patterned(n, 2)), readRequest(uint64(r.Addr), 5))
		c.expect(status(tcpframe.AddressRejected), ok, []byte("hello"))
		c.c.Close()
	}
	c := h.client()
	c.hello(h, tcpframe.FeatureDrain)
	c.send(frame(drainLimit+1, 1, v2Write))
	c.expect(status(tcpframe.AddressRejected))
	c.expectEnd()
}

func TestADrainedPayloadThatEndsEarlyEndsTheSession(t *testing.T) {
	h := openHost(t)
	c := h.client()
	c.hello(h, tcpframe.FeatureDrain)
	c.send(frame(1000, 1, v2Write), make([]byte, 999))
	if err := c.c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.expect(status(tcpframe.AddressRejected))
	c.expectEnd()
}

func TestWithoutDrainARejectionAfterAHelloSaysWhyAndCloses(t *testing.T) {
	h := openHost(t)
	_, bad := refusals(h)
	for _, b := range bad {
		for _, op := range []byte{v2Read, v2Write} {
			t.Run(fmt.Sprintf("%s %#x", b.name, op), func(t *testing.T) {
				c := h.clientOf(t)
				c.hello(h, 0)
				c.send(frame(b.size, b.addr, op))
				c.expect(status(b.code))
				c.expectEnd()
			})
		}
	}
}

func TestVersion1AfterAHelloIsStillVersion1(t *testing.T) {
	h := openHost(t)
	r := h.memory(4096, true)
	c := h.client()
	c.hello(h, tcpframe.FeatureDrain)
	c.send(frame(5, uint64(r.Addr), v1Write), []byte("hello"), frame(5, uint64(r.Addr), v1Read))
	c.expect([]byte("hello"))
	c.send(frame(5, 1, v1Write))
	c.expectEnd()
}
