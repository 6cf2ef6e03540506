package p2p

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/xfer"
)

// promise is how long any peer may keep a connection of the port.
const promise = 2 * time.Second

// TestPatience runs peers of all speeds on fake time.
func TestPatience(t *testing.T) {
	notify := frame(ctrlframe.Notify, `{"name":"a","notify_msg":"b"}`)
	large := ctrlframe.Append(nil, ctrlframe.Frame{Type: ctrlframe.Metadata, Body: make([]byte, 4<<20)})
	for _, c := range []struct {
		name     string
		request  []byte
		piece    int           // bytes at a time
		pause    time.Duration // between pieces
		answered bool
		counter  string
	}{
		{"silent", nil, 1, 0, false, "rejected.timeout"},
		{"half a length", notify[:4], 4, 0, false, "rejected.timeout"},
		{"half a body", notify[:20], 20, 0, false, "rejected.timeout"},
		{"trickle", notify, 1, 100 * time.Millisecond, false, "rejected.timeout"},
		{"slow within the limit", notify, 1, 20 * time.Millisecond, true, "requests.notify"},
		{"large and steady", large, 1<<20 - 100, time.Second, true, "requests.metadata"},
		{"large and stalled", large[:2<<20], 2 << 20, 0, false, "rejected.timeout"},
		{"large trickle", large, 64 << 10, 200 * time.Millisecond, false, "rejected.timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := silentNode(t, loopback, 15001)
				client, server := net.Pipe()
				defer client.Close()
				go serveConn(n, server)
				lastByte := make(chan time.Time, 1)
				go func() {
					for rest := c.request; len(rest) > 0; time.Sleep(c.pause) {
						wrote, err := client.Write(rest[:min(c.piece, len(rest))])
						if rest = rest[wrote:]; err != nil {
							break
						}
					}
					lastByte <- time.Now()
				}()
				start := time.Now()
				_, err := ctrlframe.Read(client, ctrlframe.DefaultLimit)
				if answered := err == nil; answered != c.answered {
					t.Errorf("answered: %v, want %v (%v)", answered, c.answered, err)
				}
				if took := time.Since(start); !c.answered && took > promise {
					t.Errorf("dropped after %v", took)
				}
				// The client does not close: the port has to.
				if c.answered {
					waitFrom := time.Now()
					if _, err := io.ReadAll(client); err != nil {
						t.Error(err)
					}
					if took := time.Since(waitFrom); took != patience {
						t.Errorf("closed after %v, want %v", took, patience)
					}
				}
				synctest.Wait()
				if got := sample(n, c.counter); got != 1 {
					t.Errorf("%s is %d, want 1", c.counter, got)
				}
				<-lastByte
			})
		})
	}
}

func TestReplyThatNobodyTakesIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := silentNode(t, loopback, 15001)
		client, server := net.Pipe()
		defer client.Close()
		served := make(chan struct{})
		go func() {
			serveConn(n, server)
			close(served)
		}()
		send(t, client, frame(ctrlframe.Probe, "{}"))
		start := time.Now()
		<-served
		if took := time.Since(start); took > promise || took == 0 {
			t.Errorf("given up after %v", took)
		}
	})
}

func TestClientOutwaitsABusyPublishedEngine(t *testing.T) {
	asked := call{stage: xfer.StageControl, peer: "peer:1"}
	request := ctrlframe.Frame{Type: ctrlframe.Probe, Body: []byte("{}\n")}
	for name, c := range map[string]struct {
		delay    time.Duration
		answered bool
	}{"three idle clients": {15 * time.Second, true}, "too long": {time.Minute, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				defer server.Close()
				go func() {
					ctrlframe.Read(server, ctrlframe.DefaultLimit)
					time.Sleep(c.delay)
					server.Write(frame(ctrlframe.Probe, "null"))
				}()
				defer time.Sleep(c.delay) // a bubble ends with its goroutines
				start := time.Now()
				_, fault := converse(t.Context(), asked, client, request, ctrlframe.DefaultLimit)
				took := time.Since(start)
				if c.answered {
					if fault != nil || took != c.delay {
						t.Errorf("after %v: %v", took, fault)
					}
					return
				}
				mustFault(t, fault, xfer.Socket, xfer.StageControl, "peer:1")
				if took != replyPatience || !errors.Is(fault, os.ErrDeadlineExceeded) {
					t.Errorf("given up after %v: %v", took, fault)
				}
			})
		})
	}
}

func TestClientThatCannotSendGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer server.Close()
		request := ctrlframe.Frame{Type: ctrlframe.Notify, Body: []byte(strings.Repeat(" ", 100))}
		_, fault := converse(t.Context(), call{stage: xfer.StageControl}, client, request, ctrlframe.DefaultLimit)
		f := mustFault(t, fault, xfer.Socket, xfer.StageControl, "cannot send the notify request")
		if f.Remote != xfer.Confirmed {
			t.Error("half a frame is no notification, so there is no doubt")
		}
	})
}
