package p2p

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/moonpath-io/moonpath/wire/ctrlframe"
)

// givenInput is a connection whose peer has sent all that it will ever send.
type givenInput struct {
	net.Conn
	input *bytes.Reader
}

func (c *givenInput) Read(b []byte) (int, error) { return c.input.Read(b) }

// FuzzServe throws bytes at the port. Whatever they are, the port ends the connection, and sends either
// nothing or one frame of the request's type and form.
func FuzzServe(f *testing.F) {
	for _, x := range loadExchanges(f, "testdata/exchanges.txt") {
		f.Add(x.request)
	}
	for _, x := range loadExchanges(f, "testdata/descriptors.txt") {
		f.Add(x.reply) // a published engine's request
	}
	n := silentNode(f, loopback, 15001)
	publish(f, n, 3)
	f.Fuzz(func(t *testing.T, request []byte) {
		client, server := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			serveConn(n, &givenInput{Conn: server, input: bytes.NewReader(request)})
		}()
		reply, err := io.ReadAll(client)
		<-served
		client.Close()
		queued := n.Notifications()
		if err != nil {
			t.Fatal(err)
		}
		asked, bad := ctrlframe.Read(bytes.NewReader(request), n.options.MaxFrame)
		if len(reply) == 0 {
			if bad == nil && asked.Type != ctrlframe.Notify || len(queued) > 0 {
				t.Fatalf("no answer to %v, %d queued", asked, len(queued))
			}
			return
		}
		got, err := ctrlframe.Read(bytes.NewReader(reply), ctrlframe.MaxLimit)
		if err != nil || !bytes.Equal(ctrlframe.Append(nil, got), reply) {
			t.Fatalf("the answer is not one frame: %q, %v", reply, err)
		}
		var tooLong *ctrlframe.Error
		if errors.As(bad, &tooLong) && tooLong.Kind == ctrlframe.TooLong {
			asked.Type, bad = ctrlframe.Metadata, nil
		}
		if bad != nil || got.Type != asked.Type || got.Legacy != asked.Legacy {
			t.Fatalf("answer %v to %v, %v", got, asked, bad)
		}
		if (asked.Type == ctrlframe.Notify) != (len(queued) == 1) {
			t.Fatalf("%d notifications queued by %v", len(queued), asked)
		}
	})
}
