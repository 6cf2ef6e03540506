package moonpath_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/xfer"
)

// TestR_OBS_2_EveryErrorOfTheFacadeSaysWhatWhereAndWhatNext provokes an error of each code that this version can
// return. A code that is added has to be added here, or to those that nothing returns yet.
func TestR_OBS_2_EveryErrorOfTheFacadeSaysWhatWhereAndWhatNext(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	there, here := alloc(t, target, 4096), alloc(t, e, 4096)
	id, tcp := open(t, e, target), pinned(t, e, "tcp")
	move := func(e *moonpath.Engine, r moonpath.Request) error {
		b := newBatch(t, e, 1)
		submit(t, b, r)
		return b.Wait(t.Context())
	}
	read := func(name string) moonpath.Request {
		return moonpath.Request{Op: moonpath.OpRead, Local: here.At(0), Len: 64, Target: openName(t, e, name), Remote: rawMemory}
	}

	var provoked []moonpath.Code
	for _, c := range []struct {
		code  moonpath.Code
		name  string
		path  string // that the error has to name
		peer  bool   // the error has to name one
		errno syscall.Errno
		call  func() error
	}{
		{xfer.InvalidArgument, "a range that wraps", "", true, 0, func() error {
			return e.Write(t.Context(), id, here.At(0), ^uint64(0), 64)
		}},
		{xfer.TooManyRequests, "a batch without room", "", false, 0, func() error {
			return e.SubmitTransfer(batchID(t, e, 0), make([]moonpath.Request, 1))
		}},
		{xfer.AddressNotRegistered, "local memory that is not registered", "", true, 0, func() error {
			return e.Write(t.Context(), id, 64, uint64(there.At(0)), 64)
		}},
		{xfer.BatchBusy, "a batch with an unfinished task", "", false, 0, func() error {
			b, _, _ := stalledTransfer(t)
			return b.Reset()
		}},
		{xfer.AddressOverlapped, "a registration on another", "", false, 0, func() error {
			return e.RegisterLocalMemory(here.At(0), 64, "*", true)
		}},
		{xfer.NotSupportedTransport, "a transport that is not there", "rdma", true, 0, func() error {
			return move(e, moonpath.Request{Op: moonpath.OpRead, Pin: pinned(t, e, "rdma"), Local: here.At(0), Len: 64, Target: id, Remote: uint64(there.At(0))})
		}},
		{xfer.DNS, "a host that does not exist", "", true, 0, func() error {
			return e.Probe(t.Context(), "no-such-host.invalid:15000")
		}},
		{xfer.Socket, "a control port that nobody serves", "", true, syscall.ECONNREFUSED, func() error {
			return e.Probe(t.Context(), deadAddress(t))
		}},
		{xfer.Socket, "a data port that nobody serves", "tcp", true, syscall.ECONNREFUSED, func() error {
			peer := newRawPeer(t, nil)
			r := read(peer.name)
			peer.data.Close()
			return move(e, r)
		}},
		{xfer.MalformedJSON, "a control port that answers without JSON", "", true, 0, func() error {
			_, err := e.OpenSegment(answering(t, "\x04\x00\x00\x00\x00\x00\x00\x00\x01xyz"))
			return err
		}},
		{xfer.Metadata, "an engine that has published nothing", "", true, 0, func() error {
			_, err := e.OpenSegment(openEngine(t, func(o *moonpath.Options) { o.Transports = []string{} }).Name())
			return err
		}},
		{xfer.Endpoint, "an engine that has left the process", "local", true, 0, func() error {
			peer := openEngine(t, nil)
			id := open(t, e, peer)
			if _, err := e.Explain(id, moonpath.OpRead, 64, moonpath.NoPin); err != nil {
				return err
			}
			peer.Close()
			return move(e, moonpath.Request{Op: moonpath.OpRead, Local: here.At(0), Len: 64, Target: id, Remote: rawMemory})
		}},
		{xfer.Memory, "more memory than there is", "", false, syscall.ENOMEM, func() error {
			_, err := e.Alloc(1<<62, moonpath.AllocOptions{})
			return err
		}},
		{xfer.Closed, "an engine that is closed", "", false, 0, func() error {
			closed := openEngine(t, nil)
			closed.Close()
			_, err := closed.NewBatch(moonpath.BatchOptions{})
			return err
		}},
		{xfer.Interrupted, "a context that has ended", "tcp", true, 0, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			r := read(newRawPeer(t, nil).name)
			return e.Read(ctx, r.Target, r.Local, r.Remote, r.Len)
		}},
		{xfer.Deadline, "a batch whose time is up", "tcp", true, 0, func() error {
			b, err := e.NewBatch(moonpath.BatchOptions{Capacity: 1, Deadline: time.Millisecond})
			if err != nil {
				return err
			}
			defer b.Close()
			submit(t, b, read(newRawPeer(t, nil).name))
			return b.Wait(t.Context())
		}},
		{xfer.Refused, "memory that the peer has not registered", "tcp", true, 0, func() error {
			return move(e, moonpath.Request{Op: moonpath.OpRead, Pin: tcp, Local: here.At(0), Len: 64, Target: id, Remote: 64})
		}},
		{xfer.WrongPeer, "another engine at the peer's ports", "tcp", true, 0, func() error {
			ports := moonpath.Options{ControlPort: freePort(t), DataPort: freePort(t)}
			addr, _ := foreign(t, 4096)
			first := restarted(t, ports, addr, 4096)
			id := open(t, e, first)
			first.Close()
			defer restarted(t, ports, addr, 4096).Close()
			return move(e, moonpath.Request{Op: moonpath.OpRead, Pin: tcp, Local: here.At(0), Len: 64, Target: id, Remote: uint64(addr)})
		}},
		{xfer.BadProtocol, "a data port that answers nonsense", "tcp", true, 0, func() error {
			return move(e, read(newRawPeer(t, func(c net.Conn) {
				if _, err := readHeader(c); err == nil {
					c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
					readHeader(c)
				}
			}).name))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.call()
			requireFault(t, err, c.code)
			var f *moonpath.Fault
			if !errors.As(err, &f) {
				return
			}
			if f.Path != c.path || (f.Peer != "") != c.peer || f.Errno() != c.errno {
				t.Errorf("path %q, peer %q, errno %d; want path %q, a peer: %v, errno %d", f.Path, f.Peer, f.Errno(), c.path, c.peer, c.errno)
			}
			for _, part := range []string{string(f.Stage), f.Path, f.Peer, f.Code.Error(), fmt.Sprintf("code %d", int(c.code)), "next: " + f.NextStep()} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
		provoked = append(provoked, c.code)
	}
	// Mooncake's codes for what this version does not have.
	unused := []moonpath.Code{xfer.OK, xfer.DeviceNotFound, xfer.RejectHandshake, xfer.Context, xfer.Numa, xfer.Clock, xfer.NotImplemented}
	for _, code := range xfer.Codes() {
		if slices.Contains(provoked, code) == slices.Contains(unused, code) {
			t.Errorf("%s (%d): neither provoked nor listed as unused, or both", code.Name(), int(code))
		}
	}
}
