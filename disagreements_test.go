package moonpath_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/wire/segjson"
	"github.com/moonpath-io/moonpath/wire/tcpframe"
	"github.com/moonpath-io/moonpath/xfer"
)

const disagreementsPage = "docs/reference/disagreements.md"

// disagreement is what became of a request, and what was said about it beforehand.
type disagreement struct {
	err        error
	explained  *moonpath.Decision // nil where Explain was not asked
	explainErr error
	says       []string // that the error has to name
}

// disagree explains a request and then makes it.
func disagree(t *testing.T, e *moonpath.Engine, r moonpath.Request, says ...string) disagreement {
	t.Helper()
	d, explainErr := e.ExplainRequest(r)
	b, err := e.NewBatch(moonpath.BatchOptions{Capacity: 1})
	if err != nil {
		return disagreement{err, d, explainErr, says}
	}
	defer b.Close()
	submit(t, b, r)
	return disagreement{b.Wait(t.Context()), d, explainErr, says}
}

// toRaw is a read of a hand-made peer's memory.
func toRaw(t *testing.T, e *moonpath.Engine, p *rawPeer) moonpath.Request {
	t.Helper()
	return moonpath.Request{Op: moonpath.OpRead, Local: alloc(t, e, 4096).At(0), Len: 4096, Target: openName(t, e, p.name), Remote: rawMemory}
}

func offering(protocols ...string) func(*segjson.Descriptor) {
	return func(d *segjson.Descriptor) { d.Protocols = protocols }
}

// serving answers every request of version 2 with a status, and reads with bytes.
func serving(status uint32) func(net.Conn) {
	return func(c net.Conn) {
		for {
			h, err := readHeader(c)
			if err != nil {
				return
			}
			if status == tcpframe.OK {
				if answerRead(c, h, 0x11) != nil {
					return
				}
				continue
			}
			frame := make([]byte, tcpframe.StatusLen)
			tcpframe.PutStatus(frame, status)
			if _, err := c.Write(frame); err != nil {
				return
			}
		}
	}
}

// tcpPair is two engines with a buffer each, and a request between them that would succeed.
func tcpPair(t *testing.T) (target, e *moonpath.Engine, there *moonpath.Memory, r moonpath.Request) {
	t.Helper()
	target, e = openEngine(t, nil), openEngine(t, nil)
	there = alloc(t, target, 8192)
	r = moonpath.Request{Op: moonpath.OpWrite, Pin: pinned(t, e, "tcp"), Local: alloc(t, e, 8192).At(0), Len: 4096, Target: open(t, e, target), Remote: uint64(there.At(0))}
	return target, e, there, r
}

// filtered is a port whose queue is full: the kernel drops what wants to connect, as a filter does.
func filtered(t *testing.T) (port uint16) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "full")
	t.Cleanup(func() { file.Close() })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	l, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for range 8 {
		c, err := net.DialTimeout("tcp", l.Addr().String(), 200*time.Millisecond)
		if err != nil {
			return uint16(l.Addr().(*net.TCPAddr).Port)
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("the queue of the listener does not fill up")
	return 0
}

// disagreements makes each row of the page happen.
var disagreements = map[string]func(t *testing.T) disagreement{
	"protocol-unknown": func(t *testing.T) disagreement {
		e := openEngine(t, nil)
		return disagree(t, e, toRaw(t, e, newRawPeer(t, nil).announce(offering("quantum"))), "quantum", "no transport has the name")
	},
	"protocol-not-built": func(t *testing.T) disagreement {
		e := openEngine(t, nil)
		return disagree(t, e, toRaw(t, e, newRawPeer(t, nil).announce(offering("rdma"))), "rdma", "this version of moonpath has no rdma", "such as tcp")
	},
	"protocol-left-out": func(t *testing.T) disagreement {
		e := openEngine(t, func(o *moonpath.Options) { o.Transports = []string{} })
		return disagree(t, e, toRaw(t, e, newRawPeer(t, nil)), "tcp", "not installed", "InstallTransport")
	},
	"protocol-uninstalled": func(t *testing.T) disagreement {
		e := openEngine(t, nil)
		r := toRaw(t, e, newRawPeer(t, serving(tcpframe.OK)))
		if err := e.Read(t.Context(), r.Target, r.Local, r.Remote, r.Len); err != nil {
			t.Fatal(err)
		}
		if err := e.UninstallTransport("tcp"); err != nil {
			t.Fatal(err)
		}
		return disagree(t, e, r, "tcp", "not installed", "InstallTransport")
	},
	"endpoint-no-port": func(t *testing.T) disagreement {
		e := openEngine(t, nil)
		return disagree(t, e, toRaw(t, e, newRawPeer(t, nil).announce(func(d *segjson.Descriptor) { d.TCPDataPort = 0 })), "tcp_data_port", "without saying where")
	},
	"pin-not-installed": func(t *testing.T) disagreement {
		_, e, _, r := tcpPair(t)
		r.Pin = pinned(t, e, "rdma")
		return disagree(t, e, r, "rdma", "peer offers tcp", "without insisting on rdma")
	},
	"pin-not-offered": func(t *testing.T) disagreement {
		e := openEngine(t, nil)
		r := toRaw(t, e, newRawPeer(t, nil).announce(offering("rdma")))
		r.Pin = pinned(t, e, "tcp")
		return disagree(t, e, r, "not offered by the peer", "install the transport at the peer")
	},
	"pin-other-process": func(t *testing.T) disagreement {
		e := openEngine(t, nil)
		r := toRaw(t, e, newRawPeer(t, nil))
		r.Pin = pinned(t, e, "local")
		return disagree(t, e, r, "an engine of this process", "without insisting on local")
	},

	"local-unregistered": func(t *testing.T) disagreement {
		_, e, _, r := tcpPair(t)
		r.Local = moonpath.Addr(unregistered(t, e, 4096))
		return disagree(t, e, r, "is not registered", "register the local buffer")
	},
	"local-leaves-region": func(t *testing.T) disagreement {
		_, e, _, r := tcpPair(t)
		addr, _ := foreign(t, 8192)
		if err := e.RegisterLocalMemory(addr, 4096, "*", true); err != nil {
			t.Fatal(err)
		}
		r.Local = addr + 4000
		return disagree(t, e, r, "+ 4000 is not registered")
	},
	"remote-unpublished": func(t *testing.T) disagreement {
		_, e, _, r := tcpPair(t)
		r.Remote = 64
		return disagree(t, e, r, "0x40 + 4096", "as the nearest of 1", "moonpath segment NAME")
	},
	"remote-leaves-buffer": func(t *testing.T) disagreement {
		_, e, there, r := tcpPair(t)
		r.Remote = uint64(there.At(there.Len())) - 100
		return disagree(t, e, r, "100 bytes of it, then a gap", "correct address and length")
	},
	"remote-private": func(t *testing.T) disagreement {
		target, e, _, r := tcpPair(t)
		r.Remote = uint64(allocPrivate(t, target, 4096).At(0))
		return disagree(t, e, r, "not permitted", "for remote access")
	},
	"remote-unregistered-since": func(t *testing.T) disagreement {
		target, e, _, r := tcpPair(t)
		gone, _ := foreign(t, 4096)
		if err := target.RegisterLocalMemory(gone, 4096, "*", true); err != nil {
			t.Fatal(err)
		}
		if err := e.SyncSegmentCache(""); err != nil {
			t.Fatal(err)
		}
		if err := target.UnregisterLocalMemory(gone); err != nil {
			t.Fatal(err)
		}
		r.Remote = uint64(gone)
		return disagree(t, e, r, "memory that the peer described", "unregistered since", "fetched anew")
	},
	"buffer-other-protocol": func(t *testing.T) disagreement {
		e := openEngine(t, nil)
		r := toRaw(t, e, newRawPeer(t, serving(tcpframe.AddressRejected)).announce(func(d *segjson.Descriptor) {
			d.Protocols = []string{"tcp"}
			d.Moonpath = &segjson.Extension{Schema: segjson.ExtensionSchema, Min: segjson.ExtensionMin, Incarnation: 1,
				Protocols: []string{"tcp", "rdma"}, Runs: []segjson.BufferRun{{Count: 1, Mask: 0b10}}}
		}))
		return disagree(t, e, r, "served over tcp", "rdma only")
	},
	"range-wraps": func(t *testing.T) disagreement {
		_, e, _, r := tcpPair(t)
		r.Remote = ^uint64(0) - 10
		return disagree(t, e, r, "leaves the address space")
	},

	"segment-not-open": func(t *testing.T) disagreement {
		_, e, _, r := tcpPair(t)
		r.Target = 99
		return disagree(t, e, r, "segment id 99 is not open")
	},
	"segment-closed": func(t *testing.T) disagreement {
		_, e, _, r := tcpPair(t)
		if err := e.CloseSegment(r.Target); err != nil {
			t.Fatal(err)
		}
		return disagree(t, e, r, "is not open", "open the segment by name")
	},
	"engine-closed": func(t *testing.T) disagreement {
		_, e, _, r := tcpPair(t)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		return disagree(t, e, r, "the engine is closed")
	},
	"peer-restarted": func(t *testing.T) disagreement {
		e := openEngine(t, nil)
		ports := moonpath.Options{ControlPort: freePort(t), DataPort: freePort(t)}
		addr, _ := foreign(t, 4096)
		first := restarted(t, ports, addr, 4096)
		r := moonpath.Request{Op: moonpath.OpWrite, Pin: pinned(t, e, "tcp"), Local: alloc(t, e, 4096).At(0), Len: 4096, Target: open(t, e, first), Remote: uint64(addr)}
		first.Close()
		second := restarted(t, ports, addr, 4096)
		t.Cleanup(func() { second.Close() })
		return disagree(t, e, r, "restarted or replaced", "ask it for its memory again")
	},
	"peer-gone": func(t *testing.T) disagreement {
		e := openEngine(t, nil)
		peer := newRawPeer(t, nil)
		r := toRaw(t, e, peer)
		peer.close()
		return disagree(t, e, r, "no data connection to 127.0.0.1", "have none either", "errno 111", "start the peer")
	},
	"data-port-closed": func(t *testing.T) disagreement {
		e := openEngine(t, nil)
		peer := newRawPeer(t, nil)
		r := toRaw(t, e, peer)
		peer.data.Close()
		return disagree(t, e, r, "no data connection to 127.0.0.1", "its control port answered", "errno 111", "nobody listens at the data port")
	},
	"data-port-filtered": func(t *testing.T) disagreement {
		port := filtered(t)
		e := openEngine(t, func(o *moonpath.Options) { o.Settings = map[string]string{"tcp.connect_timeout": "500ms"} })
		peer := newRawPeer(t, nil).announce(func(d *segjson.Descriptor) { d.TCPDataPort = port })
		return disagree(t, e, toRaw(t, e, peer), "no data connection to 127.0.0.1", "its control port answered", "open the data port in whatever filters")
	},
	"data-host-unknown": func(t *testing.T) disagreement {
		e := openEngine(t, nil)
		peer := newRawPeer(t, nil).announce(func(d *segjson.Descriptor) { d.TCPDataHost = "no-such-host.invalid" })
		return disagree(t, e, toRaw(t, e, peer), "no-such-host.invalid", "announces a data host")
	},
	"data-port-not-ours": func(t *testing.T) disagreement {
		e := openEngine(t, nil)
		return disagree(t, e, toRaw(t, e, newRawPeer(t, func(c net.Conn) {
			if _, err := readHeader(c); err == nil {
				c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
				readHeader(c)
			}
		})), "peer broke the protocol")
	},
	"data-port-of-another": func(t *testing.T) disagreement {
		e := openEngine(t, nil)
		peer := newRawPeer(t, func(c net.Conn) { // a version 2 server, to which hello is a bad request
			if _, err := readHeader(c); err == nil {
				frame := make([]byte, tcpframe.StatusLen)
				tcpframe.PutStatus(frame, tcpframe.AddressRejected)
				_, _ = c.Write(frame)
			}
		}).announce(func(d *segjson.Descriptor) {
			d.Moonpath = &segjson.Extension{Schema: segjson.ExtensionSchema, Min: segjson.ExtensionMin, Incarnation: 1, HelloVersion: 1,
				Protocols: []string{"tcp"}, Runs: []segjson.BufferRun{{Count: 1, Mask: 1}}}
		})
		return disagree(t, e, toRaw(t, e, peer), "is not the engine that the request was meant for", "ask it for its memory again")
	},
	"version-not-spoken": func(t *testing.T) disagreement {
		e := openEngine(t, nil)
		return disagree(t, e, toRaw(t, e, newRawPeer(t, func(c net.Conn) {
			for {
				h, err := readHeader(c)
				if err != nil {
					return
				}
				if _, err := c.Write(bytes.Repeat([]byte{0x11}, int(h.Size))); err != nil {
					return
				}
			}
		})), "it speaks version 1")
	},
	"peer-frozen": func(t *testing.T) disagreement {
		e := openEngine(t, func(o *moonpath.Options) {
			o.Settings = map[string]string{"tcp.status_timeout": "1s", "tcp.progress_timeout": "1s"}
		})
		peer := newRawPeer(t, nil)
		t.Cleanup(peer.close) // before the engine waits for it
		return disagree(t, e, toRaw(t, e, peer), "frozen or cut off")
	},
	"peer-left-process": func(t *testing.T) disagreement {
		target, e, _, r := tcpPair(t)
		r.Pin = moonpath.NoPin
		if d, err := e.ExplainRequest(r); err != nil || d.Path() != "local" {
			t.Fatalf("%+v, %v", d, err)
		}
		if err := target.Close(); err != nil {
			t.Fatal(err)
		}
		return disagree(t, e, r, "has left this process")
	},
	"control-port-closed": func(t *testing.T) disagreement {
		e := openEngine(t, nil)
		peer := newRawPeer(t, serving(tcpframe.OK))
		r := toRaw(t, e, peer)
		peer.control.Close()
		d := disagree(t, e, r, "cannot connect", "errno 111")
		if d.err != nil {
			t.Errorf("the data port is there, and the transfer fails: %v", d.err)
		}
		d.err = e.SyncSegmentCache(peer.name)
		return d
	},

	"name-unknown": func(t *testing.T) disagreement {
		_, err := openEngine(t, nil).OpenSegment("no-such-host.invalid:15000")
		return disagreement{err: err, says: []string{"no-such-host.invalid"}}
	},
	"nobody-there": func(t *testing.T) disagreement {
		_, err := openEngine(t, nil).OpenSegment(deadAddress(t))
		return disagreement{err: err, says: []string{"cannot connect", "errno 111"}}
	},
	"not-an-engine": func(t *testing.T) disagreement {
		peer := newRawPeer(t, nil)
		peer.reply = []byte("<html>")
		_, err := openEngine(t, nil).OpenSegment(peer.name)
		return disagreement{err: err, says: []string{"check that the port"}}
	},
	"nothing-published": func(t *testing.T) disagreement {
		_, err := openEngine(t, nil).OpenSegment(openEngine(t, func(o *moonpath.Options) { o.Transports = []string{} }).Name())
		return disagreement{err: err, says: []string{"check that the peer has installed a transport"}}
	},
	"description-broken": func(t *testing.T) disagreement {
		peer := newRawPeer(t, nil)
		peer.reply = []byte(`{"name":"x","protocol":"tcp","tcp_data_port":-1,"buffers":[]}`)
		_, err := openEngine(t, nil).OpenSegment(peer.name)
		return disagreement{err: err, says: []string{"tcp_data_port", "description that no engine can use"}}
	},
	"pin-unknown": func(t *testing.T) disagreement {
		_, err := openEngine(t, nil).Pin("warp")
		return disagreement{err: err, says: []string{"warp", "moonpath info"}}
	},
}

// TestEveryDisagreementIsReportedAsItsPageSays takes the rows from the page, so that a row without a test fails, and
// so does a test without a row.
func TestEveryDisagreementIsReportedAsItsPageSays(t *testing.T) {
	rows, ids := documented(t, disagreementsPage, "id", "situation", "code", "reason", "side", "Explain")
	for id := range disagreements {
		if rows[id] == nil {
			t.Errorf("%s has no row for %q", disagreementsPage, id)
		}
	}
	for _, id := range ids {
		t.Run(id, func(t *testing.T) {
			happen, ok := disagreements[id]
			if !ok {
				t.Fatalf("no test makes %q happen", id)
			}
			checkDisagreement(t, rows[id], happen(t))
		})
	}
}

func checkDisagreement(t *testing.T, row []string, d disagreement) {
	t.Helper()
	code, reason, side, where := row[2], row[3], xfer.Side(row[4]), row[5]
	var f *moonpath.Fault
	if !errors.As(d.err, &f) {
		t.Fatalf("the error is %v, want a fault", d.err)
	}
	requireFault(t, d.err, f.Code)
	if f.Code.Name() != code || f.MustChange() != side {
		t.Errorf("reported as %s, to be changed by %q, the page says %s and %q: %v", f.Code.Name(), f.MustChange(), code, side, f)
	}
	if reason != "–" && !strings.Contains(f.Error(), reason) {
		t.Errorf("the reason %q is not in: %v", reason, f)
	}
	for _, word := range append(d.says, "side: "+string(side), "next: ") {
		if !strings.Contains(f.Error(), word) {
			t.Errorf("%q is not in: %v", word, f)
		}
	}
	got := "–"
	switch {
	case xfer.CodeOf(d.explainErr) == f.Code:
		got = "error"
	case d.explained == nil:
	case d.explained.Chosen < 0:
		got = "rejected"
		if d.explained.Side != side || d.explained.Next != f.NextStep() {
			t.Errorf("Explain says %q and %q, the error %q and %q", d.explained.Side, d.explained.Next, side, f.NextStep())
		}
		if !slices.ContainsFunc(reasonsOf(d.explained), func(r transport.Reason) bool { return r.Code == reason && r.Side != "" && r.Next != "" }) {
			t.Errorf("Explain does not give the reason %q with a side and a next step: %+v", reason, d.explained.Rows)
		}
	case len(d.explained.Doubts) > 0:
		got = "doubt"
		if why := d.explained.Doubts[0]; len(d.explained.Doubts) != 1 || why.Code != reason || why.Side != side || why.Next == "" {
			t.Errorf("Explain doubts %+v, want the reason %q and side %q", d.explained.Doubts, reason, side)
		}
	default:
		got = "path"
	}
	if got != where {
		t.Errorf("Explain shows it as %q, the page says %q (%+v, %v)", got, where, d.explained, d.explainErr)
	}
}

func reasonsOf(d *moonpath.Decision) (all []transport.Reason) {
	for _, r := range d.Rows {
		all = append(all, r.Rejected...)
	}
	return all
}

// agree makes a request that has to succeed, and is explained without a doubt.
func agree(t *testing.T, e *moonpath.Engine, r moonpath.Request, doubts int) *moonpath.Decision {
	t.Helper()
	d, err := e.ExplainRequest(r)
	if err != nil || d.Chosen < 0 || len(d.Doubts) != doubts {
		t.Fatalf("explained as %+v, %v; want a path and %d doubts", d, err, doubts)
	}
	b := newBatch(t, e, 1)
	submit(t, b, r)
	if err := b.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	return d
}

// agreements makes each row happen that only looks like a disagreement.
var agreements = map[string]func(t *testing.T){
	"local-across-regions": func(t *testing.T) {
		_, e, _, r := tcpPair(t)
		addr, _ := foreign(t, 8192)
		if err := e.RegisterLocalMemoryBatch([]moonpath.BufferEntry{{Addr: addr, Length: 4096}, {Addr: addr + 4096, Length: 4096}}, "*"); err != nil {
			t.Fatal(err)
		}
		r.Local = addr + 2048
		agree(t, e, r, 0)
	},
	"registered-before-install": func(t *testing.T) {
		target, _, there, _ := tcpPair(t)
		e := openEngine(t, func(o *moonpath.Options) { o.Transports = []string{} })
		local := alloc(t, e, 4096)
		if _, err := e.InstallTransport("tcp"); err != nil {
			t.Fatal(err)
		}
		agree(t, e, moonpath.Request{Op: moonpath.OpWrite, Pin: pinned(t, e, "tcp"), Local: local.At(0), Len: 4096, Target: open(t, e, target), Remote: uint64(there.At(0))}, 0)
	},
	"remote-across-buffers": func(t *testing.T) {
		target, e, _, r := tcpPair(t)
		addr, _ := foreign(t, 8192)
		if err := target.RegisterLocalMemoryBatch([]moonpath.BufferEntry{{Addr: addr, Length: 4096}, {Addr: addr + 4096, Length: 4096}}, "*"); err != nil {
			t.Fatal(err)
		}
		if err := e.SyncSegmentCache(""); err != nil {
			t.Fatal(err)
		}
		r.Remote = uint64(addr) + 2048
		agree(t, e, r, 0)
	},
	"registered-after-description": func(t *testing.T) {
		target, e, _, r := tcpPair(t)
		r.Remote = uint64(alloc(t, target, 4096).At(0))
		agree(t, e, r, 1) // doubted, and tried all the same
	},
	"own-segment": func(t *testing.T) {
		_, e, _, r := tcpPair(t)
		r.Target, r.Remote, r.Pin = moonpath.LocalSegment, uint64(r.Local)+4096, pinned(t, e, "local")
		agree(t, e, r, 0)
	},
	"same-process": func(t *testing.T) {
		_, e, there, r := tcpPair(t)
		r.Pin = moonpath.NoPin
		if d := agree(t, e, r, 0); d.Rows[d.Chosen].Path != "local" {
			t.Errorf("chosen %+v", d.Rows[d.Chosen])
		}
		_ = there
	},
	"extension-unusable": func(t *testing.T) {
		e := openEngine(t, nil)
		peer := newRawPeer(t, serving(tcpframe.OK)).announce(func(d *segjson.Descriptor) {
			d.Moonpath = &segjson.Extension{Schema: 9, Min: 9, Incarnation: 1, Protocols: []string{"tcp"}, Runs: []segjson.BufferRun{{Count: 1, Mask: 1}}}
		})
		r := toRaw(t, e, peer)
		agree(t, e, r, 0)
		if d, err := e.Segment(r.Target); err != nil || d.ExtError == nil {
			t.Errorf("nothing says why the object was ignored: %+v, %v", d, err)
		}
	},
	"version-one": func(t *testing.T) {
		e := openEngine(t, nil)
		peer := newRawPeer(t, func(c net.Conn) {
			if h, err := readHeader(c); err == nil {
				c.Write(bytes.Repeat([]byte{0x11}, int(h.Size)))
			}
		}).announce(func(d *segjson.Descriptor) { d.TCPProtoVersion = 0 })
		agree(t, e, toRaw(t, e, peer), 0)
	},
}

func TestWhatOnlyLooksLikeADisagreementWorks(t *testing.T) {
	rows, ids := documented(t, disagreementsPage, "id", "situation")
	for id := range agreements {
		if rows[id] == nil {
			t.Errorf("%s has no row for %q", disagreementsPage, id)
		}
	}
	for _, id := range ids {
		t.Run(id, func(t *testing.T) {
			happen, ok := agreements[id]
			if !ok {
				t.Fatalf("no test makes %q happen", id)
			}
			happen(t)
		})
	}
}
