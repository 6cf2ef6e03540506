package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/xfer"

	"github.com/google/go-cmp/cmp"
)

func TestNotifyIsSentAsPublishedEnginesDo(t *testing.T) {
	messages := map[string]Notification{"notify": {"a", "b"}, "notify with escapes": {"nm", "ünï"}}
	for _, x := range loadExchanges(t, "testdata/exchanges.txt") {
		m, wanted := messages[x.name]
		if !wanted {
			continue
		}
		delete(messages, x.name)
		peer := startPeer(t, replying(x.reply))
		if err := silentNode(t, loopback, 1).Notify(t.Context(), peer.name, m); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		if f := peer.received(); len(f) != 1 || string(ctrlframe.Append(nil, f[0])) != string(x.request) {
			t.Errorf("%s: sent %v", x.name, f)
		}
	}
	if len(messages) > 0 {
		t.Errorf("not recorded: %v", messages)
	}
}

func TestNotificationsArriveInOrder(t *testing.T) {
	a, b := listenNode(t, nil), listenNode(t, nil)
	want := []Notification{{"batch", "1"}, {"", ""}, {"ünï", "\U0001F600\t\"\\"}, {strings.Repeat("n", 1000), strings.Repeat("t", 500_000)}}
	for _, m := range want {
		if err := a.Notify(t.Context(), b.Name(), m); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, b.Notifications()); diff != "" {
		t.Error(diff)
	}
	if got := b.Notifications(); got != nil {
		t.Errorf("the queue was not emptied: %v", got)
	}
}

func TestNotifyRefusesWhatWouldNotArrive(t *testing.T) {
	n := silentNode(t, loopback, 1)
	limit := int(ctrlframe.DefaultLimit)
	fixed := len(`x{"name":"","notify_msg":""}` + "\n")
	for name, c := range map[string]struct {
		message Notification
		says    string
	}{
		"name not UTF-8":       {Notification{Name: "\xff"}, "name is not UTF-8"},
		"text not UTF-8":       {Notification{Text: "a\xc3"}, "text is not UTF-8"},
		"NUL in the name":      {Notification{Name: "a\x00b"}, "name has a NUL at byte 1"},
		"NUL in the text":      {Notification{Text: "\x00"}, "text has a NUL at byte 0"},
		"a byte too many":      {Notification{Text: strings.Repeat("x", limit-fixed+1)}, "takes 1048577 bytes"},
		"too many with escape": {Notification{Text: strings.Repeat("ü", limit/4)}, "at most 1048576"},
		"huge":                 {Notification{Text: strings.Repeat("x", 64<<20)}, "takes 67108864 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			mustFault(t, n.Notify(t.Context(), "node1:1", c.message), xfer.InvalidArgument, xfer.StageControl, "node1:1", c.says)
		})
	}
	a, b := listenNode(t, nil), listenNode(t, nil)
	if err := a.Notify(t.Context(), b.Name(), Notification{Text: strings.Repeat("x", limit-fixed)}); err != nil {
		t.Errorf("the largest one: %v", err)
	}
}

func TestNotifyTellsDoubtFromRefusal(t *testing.T) {
	for name, c := range map[string]struct {
		reply  []byte
		code   xfer.Code // OK: accepted
		remote xfer.Certainty
	}{
		"accepted":        {frame(ctrlframe.Notify, `{"name":"","notify_msg":"success"}`), xfer.OK, 0},
		"any text":        {frame(ctrlframe.Notify, `{"notify_msg":"ok"}`), xfer.OK, 0},
		"refused":         {frame(ctrlframe.Notify, `{"name":"","notify_msg":""}`), xfer.Metadata, xfer.Confirmed},
		"not served":      {frame(ctrlframe.Notify, `null`), xfer.Metadata, xfer.Confirmed},
		"no reply":        {nil, xfer.Socket, xfer.Unknown},
		"half a reply":    {frame(ctrlframe.Notify, `{"notify_msg":"ok"}`)[:15], xfer.Socket, xfer.Unknown},
		"not JSON":        {frame(ctrlframe.Notify, `xx`), xfer.MalformedJSON, xfer.Unknown},
		"array":           {frame(ctrlframe.Notify, `[1]`), xfer.BadProtocol, xfer.Unknown},
		"text of a list":  {frame(ctrlframe.Notify, `{"notify_msg":[]}`), xfer.BadProtocol, xfer.Unknown},
		"of another type": {frame(ctrlframe.Probe, `{"notify_msg":"ok"}`), xfer.Socket, xfer.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			peer := startPeer(t, replying(c.reply))
			err := silentNode(t, loopback, 1).Notify(t.Context(), peer.name, Notification{"a", "b"})
			if c.code == xfer.OK {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if f := mustFault(t, err, c.code, xfer.StageControl, peer.name); f.Remote != c.remote {
				t.Errorf("remote state %v, want %v: %v", f.Remote, c.remote, err)
			}
		})
	}
}

func TestDoubtSurvivesOtherAddresses(t *testing.T) {
	peer := startPeer(t, replying(nil))
	n := silentNode(t, loopback, 1)
	n.resolver = &fakeResolver{addresses: []string{"127.0.0.2", loopback}}
	err := n.Notify(t.Context(), nameOf("node1", peer.port), Notification{"a", "b"})
	f := mustFault(t, err, xfer.Socket, xfer.StageControl, "connection refused", "no usable reply")
	if f.Remote != xfer.Unknown {
		t.Errorf("the last address may have got it: %v", err)
	}
}

func TestEndedContextExplainsAMissingReply(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := call{}.noReply(ctx, ctrlframe.Frame{Type: ctrlframe.Probe}, io.EOF)
	if f.Code != xfer.Interrupted || f.Next != "" {
		t.Errorf("got %v", f)
	}
}

func TestProbeTakesAnyWellFormedAnswer(t *testing.T) {
	for body, alive := range map[string]bool{`{"status":"success"}`: true, "null": true, "[]": true, "": false, "x": false} {
		peer := startPeer(t, replying(frame(ctrlframe.Probe, body)))
		if err := silentNode(t, loopback, 1).Probe(t.Context(), peer.name); (err == nil) != alive {
			t.Errorf("%q: %v", body, err)
		}
		if f := peer.received(); len(f) != 1 || string(f[0].Body) != "{}\n" || f[0].Type != ctrlframe.Probe {
			t.Errorf("sent %v", f)
		}
	}
}

// TestCallsEndWithTheirContext asks a peer that never answers.
func TestCallsEndWithTheirContext(t *testing.T) {
	for name, ask := range map[string]func(context.Context, *Node, string) error{
		"lookup": func(ctx context.Context, n *Node, name string) error { _, err := n.Lookup(ctx, name); return err },
		"notify": func(ctx context.Context, n *Node, name string) error { return n.Notify(ctx, name, Notification{}) },
		"probe":  func(ctx context.Context, n *Node, name string) error { return n.Probe(ctx, name) },
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{}, 1)
			peer := startPeer(t, func(conn *net.TCPConn) {
				asked <- struct{}{}
				io.Copy(io.Discard, conn)
			})
			n := listenNode(t, nil)
			stage := xfer.StageControl
			if name == "lookup" {
				stage = xfer.StageResolve
			}

			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-asked
				cancel()
			}()
			err := ask(ctx, n, peer.name)
			mustFault(t, err, xfer.Interrupted, stage, peer.name)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the context's error is lost: %v", err)
			}
			mustFault(t, ask(ctx, n, peer.name), xfer.Interrupted, stage)

			limited, expire := context.WithCancelCause(t.Context())
			go func() {
				<-asked
				expire(fmt.Errorf("the engine's limit: %w", xfer.Deadline))
			}()
			mustFault(t, ask(limited, n, peer.name), xfer.Deadline, stage, peer.name)

			go func() {
				<-asked
				n.Close(context.Background())
			}()
			mustFault(t, ask(t.Context(), n, peer.name), xfer.Closed, stage, "closed")
			mustFault(t, ask(t.Context(), n, peer.name), xfer.Closed, stage, "closed")
		})
	}
}

func TestUseAfterClose(t *testing.T) {
	n := listenNode(t, nil)
	d := publish(t, n, 1)
	closeNode(t, n)
	mustFault(t, n.Publish(t.Context(), func() *segment.Desc { return d }), xfer.Closed, xfer.StageControl)
	_, err := n.Lookup(t.Context(), n.Name())
	mustFault(t, err, xfer.Closed, xfer.StageResolve)
	r := &fakeResolver{addresses: []string{loopback}}
	n.resolver = r
	mustFault(t, n.Probe(t.Context(), "node1:1"), xfer.Closed, xfer.StageControl)
	if r.network != "" {
		t.Error("a closed node resolves names")
	}
	if err := n.Withdraw(t.Context()); err != nil {
		t.Error(err)
	}
}
