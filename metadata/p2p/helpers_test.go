package p2p

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/obs"
	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/xfer"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const loopback = "127.0.0.1"

// testLimit is beyond anything that a test waits for when the code is right.
const testLimit = 20 * time.Second

// listenNode returns a node on the loopback interface that is closed with the test.
func listenNode(t testing.TB, change func(*Options)) *Node {
	t.Helper()
	o := Options{Host: loopback, Bind: loopback, Obs: obs.NewGroup()}
	if change != nil {
		change(&o)
	}
	n, err := Listen(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNode(t, n) })
	return n
}

func closeNode(t testing.TB, n *Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Error(err)
	}
}

// silentNode returns a node of that name that serves no port.
func silentNode(t testing.TB, host string, port int) *Node {
	t.Helper()
	o, err := Options{Host: host, Obs: obs.NewGroup()}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(o, port)
	n.listener = closedListener{}
	t.Cleanup(func() { closeNode(t, n) })
	return n
}

type closedListener struct{ net.Listener }

func (closedListener) Close() error { return nil }

// publish gives n a description with that many buffers.
func publish(t testing.TB, n *Node, buffers int) *segment.Desc {
	t.Helper()
	d := &segment.Desc{Name: n.Name(), Protocols: []string{"tcp"}, TCP: segment.Endpoint{Host: loopback, Port: 15002, Version: 2}}
	for i := range buffers {
		d.Buffers = append(d.Buffers, segment.Buffer{Addr: uint64(i+1) << 16, Len: 4096, Location: n.Name(), Protocols: d.Protocols})
	}
	publishDesc(t, n, d)
	return d
}

func publishDesc(t testing.TB, n *Node, d *segment.Desc) {
	t.Helper()
	if err := n.Publish(t.Context(), func() *segment.Desc { return d }); err != nil {
		t.Fatal(err)
	}
}

func dial(t testing.TB, n *Node) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", n.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(testLimit))
	return conn.(*net.TCPConn)
}

// send writes b. The port may have closed by then, which shows when the answer is read.
func send(t testing.TB, conn net.Conn, b []byte) {
	t.Helper()
	if _, err := conn.Write(b); err != nil && !isReset(err) {
		t.Fatal(err)
	}
}

// receiveAll reads to the end of the connection. A reset counts as an end: it is what closing with
// unread input looks like.
func receiveAll(t testing.TB, conn net.Conn) []byte {
	t.Helper()
	b, err := io.ReadAll(conn)
	if err != nil && !isReset(err) {
		t.Fatalf("after %d bytes: %v", len(b), err)
	}
	return b
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func frame(typ ctrlframe.Type, body string) []byte {
	return ctrlframe.Append(nil, ctrlframe.Frame{Type: typ, Body: []byte(body)})
}

// mustAnswer fails unless n still answers a probe.
func mustAnswer(t testing.TB, n *Node) {
	t.Helper()
	conn := dial(t, n)
	defer conn.Close()
	send(t, conn, frame(ctrlframe.Probe, "{}"))
	if got := receiveAll(t, conn); !bytes.Contains(got, []byte("success")) {
		t.Fatalf("the port does not answer any more: %q", got)
	}
}

func sample(n *Node, name string) int64 {
	for _, s := range n.options.Obs.Snapshot() {
		if s.Name == name {
			return s.Value
		}
	}
	return -1
}

// mustFault fails unless err is a fault of that code and stage that says all of the texts.
func mustFault(t testing.TB, err error, code xfer.Code, stage xfer.Stage, texts ...string) *xfer.Fault {
	t.Helper()
	var f *xfer.Fault
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a fault", err)
	}
	if f.Code != code || f.Stage != stage {
		t.Errorf("got code %s, stage %s, want %s, %s: %v", f.Code.Name(), f.Stage, code.Name(), stage, err)
	}
	for _, text := range texts {
		if !strings.Contains(f.Error(), text) {
			t.Errorf("%q does not say %q", f.Error(), text)
		}
	}
	return f
}

// recorded is one exchange of a file in testdata.
type recorded struct {
	name           string
	request, reply []byte
}

func loadExchanges(t testing.TB, file string) []recorded {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []recorded
	for line := range strings.Lines(string(text)) {
		mark, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch mark {
		case "=":
			all = append(all, recorded{name: rest})
		case ">", "<":
			b, err := hex.DecodeString(strings.ReplaceAll(rest, " ", ""))
			if err != nil || len(all) == 0 {
				t.Fatalf("%s: line %q: %v", file, line, err)
			}
			last := &all[len(all)-1]
			if mark == ">" {
				last.request = append(last.request, b...)
			} else {
				last.reply = append(last.reply, b...)
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s holds no exchange", file)
	}
	return all
}

func replyNamed(t testing.TB, file, name string) []byte {
	t.Helper()
	for _, x := range loadExchanges(t, file) {
		if x.name == name {
			return x.reply
		}
	}
	t.Fatalf("%s has no exchange %q", file, name)
	return nil
}
