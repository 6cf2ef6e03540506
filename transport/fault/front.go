package fault

//moonpath:goroutines

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/wire/handshake"
	"github.com/moonpath-io/moonpath/wire/segjson"
	"github.com/moonpath-io/moonpath/xfer"
)

// Front is a control port in front of an engine's, moonpath's or Mooncake's. It passes questions and answers on, and
// names its proxy as the data port, so that who opens the segment under the front's name transfers through the proxy.
type Front struct {
	*Proxy  // of the data port
	target  string
	options FrontOptions
	control net.Listener
	turns   chan struct{}
}

// FrontOptions say how a front describes its engine.
type FrontOptions struct {
	// Classic leaves the moonpath object out, so that the engine looks like Mooncake's: nobody says hello to it, and
	// engines of the same process do not recognise it as a neighbour.
	Classic bool
}

// maxQuestions bounds the questions that a front serves at once; further ones wait.
const maxQuestions = 64

// questionTime bounds one question with its answer.
const questionTime = 20 * time.Second

// OpenFront asks the engine whose segment has that name for its data port, and starts a front and a proxy. An engine
// that is restarted under the same name is found again when somebody asks for its description.
func OpenFront(ctx context.Context, name string, p *Plan, o FrontOptions) (*Front, error) {
	f := &Front{target: name, options: o, turns: make(chan struct{}, maxQuestions)}
	reply, err := f.ask(ctx, ctrlframe.Append(nil, ctrlframe.Frame{Type: ctrlframe.Metadata, Body: handshake.AppendMetadataRequest(nil)}))
	if err != nil {
		return nil, f.failed("no answer from the control port", err)
	}
	data, err := dataPort(name, reply.Body)
	if err != nil {
		return nil, f.failed("the description has no data port", err)
	}
	if f.Proxy, err = Listen(data, p); err != nil {
		return nil, err
	}
	if f.control, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, errors.Join(f.failed("no control port for the front", err), f.Proxy.Close())
	}
	f.spawn(f.serve)
	return f, nil
}

func (f *Front) failed(what string, cause error) *xfer.Fault {
	return &xfer.Fault{Code: xfer.Metadata, Stage: xfer.StageResolve, Peer: f.target, Cause: cause, Detail: what, Next: "name the segment of an engine that serves TCP and is found by P2PHANDSHAKE"}
}

// Name is what to open instead of the engine's name.
func (f *Front) Name() string { return f.control.Addr().String() }

// Close ends the front and its proxy; nothing of them is left when it returns.
func (f *Front) Close() error { return errors.Join(f.control.Close(), f.Proxy.Close()) }

func (f *Front) serve() {
	for {
		c, err := f.control.Accept()
		if err != nil {
			return
		}
		f.turns <- struct{}{}
		if !f.spawn(func() { f.answer(c); <-f.turns }) {
			c.Close()
			return
		}
	}
}

// answer serves one question: a connection carries no more. What cannot be answered is closed, as engines do.
func (f *Front) answer(c net.Conn) {
	defer c.Close()
	ctx, cancel := context.WithTimeout(f.ctx, questionTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	question, err := ctrlframe.Read(c, ctrlframe.MaxLimit)
	if err != nil {
		return
	}
	reply, err := f.ask(ctx, ctrlframe.Append(nil, question))
	if err != nil {
		return
	}
	if reply.Type == ctrlframe.Metadata {
		reply.Body = f.redirected(reply.Body)
	}
	if _, err := c.Write(ctrlframe.Append(nil, reply)); err == nil {
		_, _ = io.Copy(io.Discard, c) // until who asked has closed: that one waits for it
	}
}

func (f *Front) ask(ctx context.Context, question []byte) (ctrlframe.Frame, error) {
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", f.target)
	if err != nil {
		return ctrlframe.Frame{}, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if _, err := c.Write(question); err != nil {
		return ctrlframe.Frame{}, err
	}
	return ctrlframe.Read(c, ctrlframe.MaxLimit)
}

// redirected is a description with the proxy as the data port; what is none stays as it is. Everything else in it
// stays, too, known or not.
func (f *Front) redirected(body []byte) []byte {
	data, err := dataPort(f.target, body)
	if err != nil {
		return body
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return body
	}
	f.Retarget(data)
	all["tcp_data_host"] = json.RawMessage(strconv.Quote(f.Addr().IP.String()))
	all["tcp_data_port"] = json.RawMessage(strconv.Itoa(f.Addr().Port))
	if f.options.Classic {
		delete(all, "moonpath")
	}
	changed, err := json.Marshal(all)
	if err != nil {
		return body
	}
	return append(changed, '\n')
}

var errNoDataPort = errors.New("tcp_data_port is missing or 0")

func dataPort(opened string, body []byte) (string, error) {
	w, err := segjson.Parse(body)
	if err != nil {
		return "", err
	}
	d := segment.FromWire(opened, w)
	if d.TCP.Port == 0 {
		return "", errNoDataPort
	}
	return d.TCP.Address(), nil
}
