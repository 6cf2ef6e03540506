package moonpath_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/transport/tcp"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// openMany opens n engines at the same time, each with one buffer.
func openMany(t *testing.T, n int) ([]*moonpath.Engine, []*moonpath.Memory) {
	t.Helper()
	engines, memory := make([]*moonpath.Engine, n), make([]*moonpath.Memory, n)
	failed := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			e, err := moonpath.Open(context.Background(), moonpath.Options{Host: "127.0.0.1", Environ: []string{}})
			if err == nil {
				engines[i] = e
				memory[i], err = e.Alloc(64<<10, moonpath.AllocOptions{})
			}
			failed[i] = err
		})
	}
	group.Wait()
	t.Cleanup(func() {
		for _, e := range engines {
			if e != nil {
				e.Close()
			}
		}
	})
	for i, err := range failed {
		if err != nil {
			t.Fatalf("engine %d: %v", i, err)
		}
	}
	return engines, memory
}

func TestR_NET_1_EnginesOfOneHostOwnTheirPortsAndAWriteReachesItsTarget(t *testing.T) {
	const n = 64
	engines, memory := openMany(t, n)
	owner := make(map[int]int)
	for i, e := range engines {
		for _, port := range []int{e.GetRPCPort(), dataPort(t, e)} {
			if j, taken := owner[port]; taken {
				t.Fatalf("engines %d and %d both own port %d", j, i, port)
			}
			owner[port] = i
		}
	}
	// Every engine writes its own mark to its neighbour over TCP, all at once.
	failed := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { failed[i] = writeMark(engines[i], memory[i], engines[(i+1)%n], memory[(i+1)%n], i) })
	}
	group.Wait()
	for i, err := range failed {
		if err != nil {
			t.Fatalf("engine %d: %v", i, err)
		}
	}
	for i := range n {
		from := (i + n - 1) % n
		if got := memory[i].Bytes()[:16]; !bytes.Equal(got, mark(from)) {
			t.Errorf("engine %d holds %q, want the mark of engine %d", i, got, from)
		}
	}
}

func mark(i int) []byte { return fmt.Appendf(nil, "mark of %8d", i)[:16] }

// writeMark writes from the second half of an engine's memory to the start of its neighbour's.
func writeMark(e *moonpath.Engine, own *moonpath.Memory, to *moonpath.Engine, there *moonpath.Memory, i int) error {
	copy(own.Bytes()[32<<10:], mark(i))
	id, err := e.OpenSegment(to.Name())
	if err != nil {
		return err
	}
	pin, err := e.Pin("tcp")
	if err != nil {
		return err
	}
	b, err := e.NewBatch(moonpath.BatchOptions{Capacity: 1})
	if err != nil {
		return err
	}
	defer b.Close()
	r := moonpath.Request{Op: moonpath.OpWrite, Pin: pin, Local: own.At(32 << 10), Len: 16, Target: id, Remote: uint64(there.At(0))}
	if _, err := b.Submit(context.Background(), []moonpath.Request{r}); err != nil {
		return err
	}
	return b.Wait(context.Background())
}

// TestR_NET_1_AnotherProcessAtTheDataPortIsRefused puts one engine at the data port that another one had: what
// was meant for the first must not reach the second, although the second has memory at the same addresses.
func TestR_NET_1_AnotherProcessAtTheDataPortIsRefused(t *testing.T) {
	old := openEngine(t, nil)
	shared := alloc(t, old, 4096)
	source := openEngine(t, nil)
	here := alloc(t, source, 4096)
	id, err := source.OpenSegment(old.Name())
	if err != nil {
		t.Fatal(err)
	}
	control, data := old.GetRPCPort(), dataPort(t, old)
	address := shared.At(0)
	old.Close()

	usurper := openEngine(t, func(o *moonpath.Options) { o.ControlPort, o.DataPort = control, data })
	theirs := alloc(t, usurper, 4096)
	copy(here.Bytes(), "must not arrive")
	pin, err := source.Pin("tcp")
	if err != nil {
		t.Fatal(err)
	}
	b, err := source.NewBatch(moonpath.BatchOptions{Capacity: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Submit(t.Context(), []moonpath.Request{{Op: moonpath.OpWrite, Pin: pin, Local: here.At(0), Len: 15, Target: id, Remote: uint64(theirs.At(0))}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Wait(t.Context()); xfer.CodeOf(err) != xfer.WrongPeer {
		t.Errorf("a write to %#x of an engine that is gone: %v, want %v", uint64(address), err, xfer.WrongPeer)
	}
	if bytes.Contains(theirs.Bytes(), []byte("must not")) {
		t.Error("the write reached another engine")
	}
}

// TestR_NET_1_EveryDataConnectionIsAskedWhoItIsFor looks at the first frame that an engine sends.
func TestR_NET_1_EveryDataConnectionIsAskedWhoItIsFor(t *testing.T) {
	target := openEngine(t, nil)
	d, err := target.Segment(moonpath.LocalSegment)
	if err != nil {
		t.Fatal(err)
	}
	for name, incarnation := range map[string]uint64{"right": d.Ext.Incarnation, "wrong": d.Ext.Incarnation + 1} {
		c, err := net.Dial("tcp", d.TCP.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var frame [tcpframe.HeaderLen]byte
		tcpframe.PutHello(&frame, tcpframe.Hello{Incarnation: incarnation, MaxVersion: tcpframe.HelloVersion, MinVersion: tcpframe.HelloVersion})
		if _, err := c.Write(frame[:]); err != nil {
			t.Fatal(err)
		}
		var answer [tcpframe.HelloAnswerLen]byte
		if _, err := c.Read(answer[:]); err != nil {
			t.Fatal(err)
		}
		a, err := tcpframe.ParseHelloAnswer(answer[:])
		if err != nil {
			t.Fatal(err)
		}
		if accepted := a.Code == tcpframe.OK; accepted != (name == "right") || a.Incarnation != d.Ext.Incarnation {
			t.Errorf("%s incarnation over %s: %+v", name, tcp.Name, a)
		}
	}
}
