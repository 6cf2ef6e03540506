package p2p

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/xfer"

	"github.com/google/go-cmp/cmp"
)

func TestAnswersMatchRecordedExchanges(t *testing.T) {
	for _, x := range loadExchanges(t, "testdata/exchanges.txt") {
		for name, piece := range map[string]int{"at once": len(x.request), "byte by byte": 1} {
			t.Run(x.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				n := listenNode(t, nil)
				conn := dial(t, n)
				for rest := x.request; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
					send(t, conn, rest[:min(piece, len(rest))])
				}
				// The port ends the connection by itself: this end stays open.
				if got := receiveAll(t, conn); !bytes.Equal(got, x.reply) {
					t.Errorf("got\n% x, want\n% x", got, x.reply)
				}
				mustAnswer(t, n)
			})
		}
	}
}

func TestDescriptionIsThatOfAPublishedEngine(t *testing.T) {
	want := replyNamed(t, "testdata/descriptors.txt", "0.3.13.post1")
	n := silentNode(t, loopback, 16683)
	d := publish(t, n, 2)
	d.TCP.Port = 15676
	d.Buffers[0].Addr, d.Buffers[0].Len = 140137227468800, 4096
	d.Buffers[1].Addr, d.Buffers[1].Len = 140137227476992, 8192
	got := bytes.Clone(n.descriptorFrame())
	stamp := `"timestamp":"`
	at := bytes.Index(want, []byte(stamp)) + len(stamp)
	if len(got) != len(want) {
		t.Fatalf("got %d bytes, want %d: %s", len(got), len(want), got)
	}
	if _, err := time.Parse(timestampForm, string(got[at:at+len(timestampForm)])); err != nil {
		t.Error(err)
	}
	copy(got[at:at+len(timestampForm)], want[at:])
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestReplyLeavesInOneWrite(t *testing.T) {
	n := silentNode(t, loopback, 15001)
	publish(t, n, 1000)
	conn := &scriptedConn{input: bytes.NewReader(frame(ctrlframe.Metadata, "{}"))}
	serveConn(n, conn)
	if len(conn.writes) != 1 || !bytes.Equal(conn.writes[0], n.descriptorFrame()) {
		t.Errorf("%d writes", len(conn.writes))
	}
}

// scriptedConn is a connection whose input is known and whose output is kept.
type scriptedConn struct {
	net.Conn
	input  io.Reader
	writes [][]byte
}

func (c *scriptedConn) Read(b []byte) (int, error) { return c.input.Read(b) }
func (c *scriptedConn) Write(b []byte) (int, error) {
	c.writes = append(c.writes, bytes.Clone(b))
	return len(b), nil
}
func (c *scriptedConn) Close() error                     { return nil }
func (c *scriptedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *scriptedConn) SetWriteDeadline(time.Time) error { return nil }
func (c *scriptedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// serveConn serves one connection to its end.
func serveConn(n *Node, conn net.Conn) {
	s := &session{conn: conn}
	if n.slots.enter(s) {
		n.serve(s)
	}
}

func TestTruncatedRequestsGetNoAnswer(t *testing.T) {
	n := listenNode(t, nil)
	for _, x := range loadExchanges(t, "testdata/exchanges.txt") {
		if x.reply == nil || x.name == "a second frame is ignored" {
			continue
		}
		for size := range len(x.request) {
			conn := dial(t, n)
			send(t, conn, x.request[:size])
			conn.CloseWrite()
			if got := receiveAll(t, conn); len(got) > 0 {
				t.Errorf("%s, %d of %d bytes: got % x", x.name, size, len(x.request), got)
			}
			conn.Close()
		}
	}
	mustAnswer(t, n)
	if got := n.Notifications(); got != nil {
		t.Errorf("truncated notifications were queued: %v", got)
	}
	if sample(n, "rejected.truncated") == 0 || sample(n, "rejected.no_byte") == 0 {
		t.Error("nothing was counted")
	}
}

func TestWrongShapesHarmNobody(t *testing.T) {
	deep := strings.Repeat("[", 1100) + strings.Repeat("]", 1100)
	bodies := map[string]string{
		"array": "[1]", "number": "0", "string": `""`, "true": "true", "null": "null",
		"deep array": deep, "deep member": `{"a":` + deep + `}`, "deep known member": `{"name":` + deep + `,"notify_msg":` + deep + `,"qp_num":` + deep + `}`,
		"deep objects": strings.Repeat(`{"name":`, 1100) + "1" + strings.Repeat("}", 1100),
		"object":       `{"name":{}}`, "list": `{"notify_msg":[1]}`, "qp_num": `{"qp_num":["x",-1,99999999999]}`,
		"lone surrogate": `{"name":"\ud83d"}`, "trailing comma": `{"name":"a",}`, "open": `{"name":"a`, "empty": "",
	}
	// Metadata, probe and connection do not look at the body; it has to be JSON all the same.
	malformed := map[string]bool{"lone surrogate": true, "trailing comma": true, "open": true, "empty": true}
	notifications := map[string]bool{"deep member": true, "qp_num": true}
	objects := map[string]bool{"deep member": true, "deep known member": true, "deep objects": true, "object": true, "list": true, "qp_num": true}
	n := listenNode(t, nil)
	for name, body := range bodies {
		for typ, wanted := range map[ctrlframe.Type]bool{
			ctrlframe.Metadata: !malformed[name], ctrlframe.Probe: !malformed[name], ctrlframe.Connection: !malformed[name],
			ctrlframe.Notify: notifications[name],
		} {
			checkAnswered(t, n, fmt.Sprintf("%s of %s", typ, name), frame(typ, body), wanted)
		}
		old := ctrlframe.Append(nil, ctrlframe.Frame{Legacy: true, Body: []byte(body)})
		checkAnswered(t, n, "old protocol of "+name, old, objects[name])
	}
	mustAnswer(t, n)
	// Notifications that are JSON, and no notifications.
	if got, want := sample(n, "rejected.wrong_shape"), int64(len(bodies)-len(malformed)-len(notifications)); got != want {
		t.Errorf("counted %d of wrong shape, want %d", got, want)
	}
}

func checkAnswered(t *testing.T, n *Node, what string, request []byte, wanted bool) {
	t.Helper()
	conn := dial(t, n)
	defer conn.Close()
	send(t, conn, request)
	if got := receiveAll(t, conn); (len(got) > 0) != wanted {
		t.Errorf("%s: got %q, want an answer: %v", what, got, wanted)
	}
}

func TestLargeMetadataRequestIsSkippedNotKept(t *testing.T) {
	const size = 64 << 20
	n := silentNode(t, loopback, 15001)
	publish(t, n, 1)
	head := ctrlframe.Append(nil, ctrlframe.Frame{Type: ctrlframe.Metadata, Body: make([]byte, size)})[:9]
	conn := &scriptedConn{input: io.MultiReader(bytes.NewReader(head), io.LimitReader(zeros{}, size))}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	serveConn(n, conn)
	runtime.ReadMemStats(&after)
	if len(conn.writes) != 1 || !bytes.Equal(conn.writes[0], n.descriptorFrame()) {
		t.Errorf("%d replies", len(conn.writes))
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("took %d bytes of memory for a request of %d", used, size)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestRequestsAboveTheLimit(t *testing.T) {
	large := `{"name":"` + strings.Repeat("x", int(ctrlframe.DefaultLimit)) + `"}`
	n := listenNode(t, nil)
	checkAnswered(t, n, "large metadata request", frame(ctrlframe.Metadata, large), true)
	checkAnswered(t, n, "large notification", frame(ctrlframe.Notify, large), false)
	fits := large[:len(`{"name":"`)] + large[len(`{"name":"`)+len(`{"name":""}`)+1:]
	checkAnswered(t, n, "notification of the limit", frame(ctrlframe.Notify, fits), true)
	beyond := ctrlframe.Append(nil, ctrlframe.Frame{Type: ctrlframe.Metadata, Body: nil})
	beyond[0], beyond[3] = 1, 8 // 128 MiB + 1
	checkAnswered(t, n, "metadata request above any limit", beyond, false)
	if got := sample(n, "rejected.too_long"); got != 2 {
		t.Errorf("counted %d as too long, want 2", got)
	}
}

func TestFullQueueRefusesInAFormThatPublishedSendersUnderstand(t *testing.T) {
	n := listenNode(t, nil)
	n.inbox.maxMessages = 2
	want := []Notification{{"a", "b"}, {"a", "c"}}
	sender := listenNode(t, nil)
	for _, m := range want {
		if err := sender.Notify(t.Context(), n.Name(), m); err != nil {
			t.Fatal(err)
		}
	}
	conn := dial(t, n)
	send(t, conn, frame(ctrlframe.Notify, `{"name":"a","notify_msg":"d"}`))
	if got, want := receiveAll(t, conn), frame(ctrlframe.Notify, `{"name":"","notify_msg":""}`+"\n"); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	f := mustFault(t, sender.Notify(t.Context(), n.Name(), Notification{"a", "e"}), xfer.Metadata, xfer.StageControl, "refused")
	if f.Remote != xfer.Confirmed {
		t.Error("a refusal is no doubt")
	}
	if queued, dropped := sample(n, "notifications.queued"), sample(n, "notifications.dropped"); queued != 2 || dropped != 2 {
		t.Errorf("counted %d queued and %d dropped, want 2 and 2", queued, dropped)
	}
	if got := n.Notifications(); !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := sender.Notify(t.Context(), n.Name(), Notification{"a", "f"}); err != nil {
		t.Errorf("the queue is empty again: %v", err)
	}
}

func TestInboxBounds(t *testing.T) {
	b := newInbox()
	for i := range maxNotifications {
		if !b.put(Notification{}) {
			t.Fatalf("message %d refused", i)
		}
	}
	if b.put(Notification{}) {
		t.Error("one too many was taken")
	}
	b.drain()
	quarter := strings.Repeat("x", maxNotificationBytes/4)
	for range 2 {
		if !b.put(Notification{quarter, quarter}) {
			t.Fatal("refused below the limit")
		}
	}
	if b.put(Notification{Text: "x"}) {
		t.Error("a byte too many was taken")
	}
	if got := b.drain(); len(got) != 2 || !b.put(Notification{quarter, quarter}) {
		t.Error("draining did not make room")
	}
}

func TestConcurrentMetadataRequests(t *testing.T) {
	n := listenNode(t, nil)
	publish(t, n, 10000)
	var clients sync.WaitGroup
	for range 200 {
		clients.Go(func() {
			conn, err := net.Dial("tcp", n.Name())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(testLimit))
			send(t, conn, frame(ctrlframe.Metadata, "{}\n"))
			want := n.descriptorFrame()
			got := make([]byte, len(want))
			if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("another reply, or none: %v", err)
			}
		})
	}
	clients.Wait()
	if got := sample(n, "requests.metadata"); got != 200 {
		t.Errorf("counted %d requests, want 200", got)
	}
}

func TestNewcomerTakesThePlaceOfTheLongestSilent(t *testing.T) {
	half := frame(ctrlframe.Notify, `{"name":"a","notify_msg":"b"}`)[:20]
	large := frame(ctrlframe.Notify, strings.Repeat(" ", smallRequest))
	for name, c := range map[string]struct {
		request []byte
		bound   int
		list    func(*slots) *list.List
	}{
		"silent":             {nil, maxConnections, func(s *slots) *list.List { return &s.quiet }},
		"half a length":      {half[:4], maxConnections, func(s *slots) *list.List { return &s.quiet }},
		"reply not taken up": {frame(ctrlframe.Probe, "{}"), maxConnections, func(s *slots) *list.List { return &s.quiet }},
		"half a body":        {half, maxConnections, func(s *slots) *list.List { return &s.quiet }},
		"half a large body":  {large[:smallRequest/2], maxTurns, func(s *slots) *list.List { return &s.reading }},
	} {
		t.Run(name, func(t *testing.T) {
			n := listenNode(t, nil)
			var held []net.Conn
			for range c.bound {
				conn := dial(t, n)
				send(t, conn, c.request)
				held = append(held, conn)
				eventually(t, func() bool {
					n.slots.mu.Lock()
					defer n.slots.mu.Unlock()
					return len(n.slots.open) == len(held) && c.list(n.slots).Len() == len(held)
				})
			}
			start := time.Now()
			if c.bound == maxTurns {
				mustAnswer(t, n) // a small request needs no turn
				if got := sample(n, "evicted"); got != 0 {
					t.Errorf("evicted %d connections for a small request", got)
				}
				checkAnswered(t, n, "another large request", frame(ctrlframe.Probe, "{}"+strings.Repeat(" ", smallRequest)), true)
			} else {
				mustAnswer(t, n)
			}
			if took := time.Since(start); took > patience/2 {
				t.Errorf("the newcomer waited %v", took)
			}
			if got := sample(n, "evicted"); got != 1 {
				t.Errorf("evicted %d connections, want 1", got)
			}
			receiveAll(t, held[0])
			if got := sample(n, "connections"); got < int64(c.bound)-1 {
				t.Errorf("only %d connections are left", got)
			}
		})
	}
}

// eventually waits for what another goroutine is about to do.
func eventually(t testing.TB, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testLimit); !condition(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("it never happened")
		}
	}
}

func TestAcceptGoesOnAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := silentNode(t, loopback, 15001)
		client, server := net.Pipe()
		n.listener = &failingListener{failures: 3, conn: server}
		start := time.Now()
		n.start()
		send(t, client, frame(ctrlframe.Probe, "{}"))
		f, err := ctrlframe.Read(client, ctrlframe.DefaultLimit)
		if err != nil || f.Type != ctrlframe.Probe {
			t.Errorf("got %v, %v", f, err)
		}
		if waited := time.Since(start); waited != 3*acceptPause {
			t.Errorf("three failures took %v, want %v", waited, 3*acceptPause)
		}
		client.Close()
		n.served.Wait()
	})
}

// failingListener fails, hands out one connection, and ends.
type failingListener struct {
	net.Listener
	failures int
	conn     net.Conn
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.failures--; l.failures >= 0 {
		return nil, errors.New("too many open files")
	}
	conn := l.conn
	l.conn = nil
	if conn == nil {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l *failingListener) Close() error { return nil }

func TestCloseUnderLoad(t *testing.T) {
	n := listenNode(t, nil)
	publish(t, n, 1000)
	for range 20 {
		dial(t, n) // silent
	}
	var clients sync.WaitGroup
	asked := make(chan struct{}, 1000)
	for range 8 {
		clients.Go(func() {
			for {
				conn, err := net.Dial("tcp", n.Name())
				if err != nil {
					return // the port is closed
				}
				conn.SetDeadline(time.Now().Add(testLimit))
				conn.Write(frame(ctrlframe.Metadata, "{}"))
				f, err := ctrlframe.Read(conn, ctrlframe.DefaultLimit)
				if err == nil && !bytes.HasPrefix(f.Body, []byte(`{"buffers":[{`)) {
					t.Errorf("got %.60s", f.Body)
				}
				conn.Close()
				select {
				case asked <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 200 {
		<-asked
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > patience/2 {
		t.Errorf("closing took %v: silent connections were waited for", took)
	}
	clients.Wait()
	if got := n.slots.len(); got != 0 {
		t.Errorf("%d connections are left", got)
	}
	if err := n.Close(ctx); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	stacks := make([]byte, 1<<20)
	for range 50 {
		n := listenNode(t, nil)
		for range 4 {
			dial(t, n)
		}
		eventually(t, func() bool { return sample(n, "connections") == 4 })
		closeNode(t, n)
		if now := string(stacks[:runtime.Stack(stacks, true)]); strings.Contains(now, "p2p.(*Node)") {
			t.Fatal(now)
		}
	}
}

func TestCloseCutsRepliesThatNobodyTakes(t *testing.T) {
	n := listenNode(t, func(o *Options) { o.MaxFrame = ctrlframe.MaxLimit })
	publish(t, n, 400_000) // more than the kernel holds for a connection
	conn := dial(t, n)
	conn.SetReadBuffer(4096)
	send(t, conn, frame(ctrlframe.Metadata, "{}"))
	eventually(t, func() bool { return sample(n, "requests.metadata") == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	mustFault(t, n.Close(ctx), xfer.Interrupted, xfer.StageClose, "cut")
	if n.slots.len() != 0 {
		t.Error("connections are left")
	}
}
