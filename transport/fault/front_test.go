package fault_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath/segment"
	"github.com/moonpath-io/moonpath/transport/fault"
	"github.com/moonpath-io/moonpath/wire/ctrlframe"
	"github.com/moonpath-io/moonpath/wire/segjson"
	"github.com/moonpath-io/moonpath/xfer"
)

// control answers every frame of one type with the same body, as an engine's control port does.
func control(t testing.TB, bodies map[ctrlframe.Type]string) string {
	return changingControl(t, func(of ctrlframe.Type) string { return bodies[of] })
}

func changingControl(t testing.TB, body func(ctrlframe.Type) string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.SetDeadline(time.Now().Add(patience))
			if f, err := ctrlframe.Read(c, ctrlframe.DefaultLimit); err == nil {
				c.Write(ctrlframe.Append(nil, ctrlframe.Frame{Type: f.Type, Body: []byte(body(f.Type))}))
				io.Copy(io.Discard, c)
			}
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-over })
	return l.Addr().String()
}

func ask(t testing.TB, addr string, of ctrlframe.Type, body string) ctrlframe.Frame {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(ctrlframe.Append(nil, ctrlframe.Frame{Type: of, Body: []byte(body)})); err != nil {
		t.Fatal(err)
	}
	f, err := ctrlframe.Read(c, ctrlframe.DefaultLimit)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFrontReplacesTheDataPortAndNothingElse(t *testing.T) {
	s := listen(t)
	data := s.listener.Addr().(*net.TCPAddr)
	d := &segjson.Descriptor{Name: "10.0.0.1:12001", Protocols: []string{"tcp"}, TCPProtoVersion: 2, TCPDataHost: "localhost", TCPDataPort: uint16(data.Port),
		Buffers: []segjson.Buffer{{Name: "cpu:0", Addr: 0xfffffffffffff000, Length: 4095}}}
	text := strings.Replace(string(segjson.Append(nil, d)), "{", `{"unheard_of":[1,{"a":18446744073709551615}],`, 1)
	name := control(t, map[ctrlframe.Type]string{ctrlframe.Metadata: text, ctrlframe.Notify: `{"status":"success"}`})
	f, err := fault.OpenFront(t.Context(), name, newPlan(t, 1, fault.StreamRule{Do: fault.Duplicate, Bytes: 3}), fault.FrontOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	reply := ask(t, f.Name(), ctrlframe.Metadata, "{}")
	got, err := segjson.Parse(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	if int(got.TCPDataPort) != f.Addr().Port || f.Addr().Port == data.Port {
		t.Errorf("data port %d, the proxy's is %d", got.TCPDataPort, f.Addr().Port)
	}
	if got.TCPDataHost != f.Addr().IP.String() {
		t.Errorf("data host %q", got.TCPDataHost)
	}
	got.TCPDataHost, got.TCPDataPort = d.TCPDataHost, d.TCPDataPort
	same(t, "description", got, d)
	if !strings.Contains(string(reply.Body), `"unheard_of":[1,{"a":18446744073709551615}]`) {
		t.Errorf("what the front does not know is lost: %s", reply.Body)
	}
	if got := ask(t, f.Name(), ctrlframe.Notify, `{"name":"n"}`); got.Type != ctrlframe.Notify || string(got.Body) != `{"status":"success"}` {
		t.Errorf("the reply to a notification is %v %s", got.Type, got.Body)
	}
	client, far := connect(t, f.Proxy, s)
	send(t, client, "abc")
	wantBytes(t, far, "abcabc")
}

func TestFrontNeedsAnEngineWithADataPort(t *testing.T) {
	for name, addr := range map[string]string{
		"nobody":    "127.0.0.1:1",
		"no tcp":    control(t, map[ctrlframe.Type]string{ctrlframe.Metadata: `{"name":"x","protocol":"rdma","devices":[],"buffers":[],"priority_matrix":{}}`}),
		"no engine": control(t, map[ctrlframe.Type]string{ctrlframe.Metadata: "null"}),
	} {
		f, err := fault.OpenFront(t.Context(), addr, newPlan(t, 1), fault.FrontOptions{})
		if xfer.CodeOf(err) != xfer.Metadata {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			f.Close()
		}
	}
}

func TestClassicFrontHidesTheMoonpathObject(t *testing.T) {
	d := &segjson.Descriptor{Name: "10.0.0.1:12001", Protocols: []string{"tcp"}, TCPProtoVersion: 2, TCPDataHost: "127.0.0.1", TCPDataPort: 15001, Buffers: []segjson.Buffer{},
		Moonpath: &segjson.Extension{Schema: segjson.ExtensionSchema, Min: segjson.ExtensionMin, Incarnation: 7, Protocols: []string{"tcp"}, HelloVersion: 1}}
	name := control(t, map[ctrlframe.Type]string{ctrlframe.Metadata: string(segjson.Append(nil, d))})
	for _, classic := range []bool{false, true} {
		f, err := fault.OpenFront(t.Context(), name, newPlan(t, 1), fault.FrontOptions{Classic: classic})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		got, err := segjson.Parse(ask(t, f.Name(), ctrlframe.Metadata, "{}").Body)
		if err != nil || (got.Moonpath == nil) != classic {
			t.Errorf("classic %v: %+v, %v", classic, got, err)
		}
	}
}

// An engine that is restarted has another data port, and its descriptions say so.
func TestFrontFollowsItsEngine(t *testing.T) {
	servers := []*server{listen(t), listen(t)}
	var now atomic.Int32
	name := changingControl(t, func(ctrlframe.Type) string {
		port := servers[now.Load()].listener.Addr().(*net.TCPAddr).Port
		return string(segjson.Append(nil, &segjson.Descriptor{Name: "10.0.0.1:12001", Protocols: []string{"tcp"}, TCPProtoVersion: 2, TCPDataHost: "127.0.0.1", TCPDataPort: uint16(port)}))
	})
	f, err := fault.OpenFront(t.Context(), name, newPlan(t, 1), fault.FrontOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	connect(t, f.Proxy, servers[0])
	now.Store(1)
	ask(t, f.Name(), ctrlframe.Metadata, "{}")
	connect(t, f.Proxy, servers[1])
}

// directory knows one description of every name.
type directory struct{ segment.Directory }

func (directory) Lookup(_ context.Context, name string) (*segment.Desc, error) {
	if name == "gone" {
		return nil, xfer.Metadata
	}
	return &segment.Desc{Name: name, TCP: segment.Endpoint{Host: "10.0.0.1", Port: 15001, Version: 2}}, nil
}

func TestRedirectedDirectoryNamesTheProxy(t *testing.T) {
	proxy := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}
	dir := fault.Redirect(directory{}, func(name string, _ *segment.Desc) *net.TCPAddr {
		if name == "far" {
			return proxy
		}
		return nil
	})
	for name, want := range map[string]segment.Endpoint{"far": {Host: "127.0.0.1", Port: 4711, Version: 2}, "near": {Host: "10.0.0.1", Port: 15001, Version: 2}} {
		d, err := dir.Lookup(t.Context(), name)
		if err != nil || d.Name != name || d.TCP != want {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	if _, err := dir.Lookup(t.Context(), "gone"); xfer.CodeOf(err) != xfer.Metadata {
		t.Errorf("got %v", err)
	}
}
