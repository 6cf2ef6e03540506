package moonpath_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/moonpath-io/moonpath"
	"github.com/moonpath-io/moonpath/transport"
	"github.com/moonpath-io/moonpath/xfer"
)

// protocols are the names of published engines.
var protocols = []string{"tcp", "shm", "rdma", "rdma_twosided", "efa", "cxi", "barex", "ub", "ubshmem", "nvlink", "nvlink_intra", "hip",
	"musa", "maca", "sunrise_link", "nccl", "flagcx", "ascend", "cxl", "nvmeof"}

func TestEveryProtocolNameIsKnownAndSaysWhyItIsAbsent(t *testing.T) {
	e := openEngine(t, nil)
	infos := make(map[string]moonpath.TransportInfo)
	for _, i := range e.Transports() {
		infos[i.Name] = i
	}
	for _, name := range append([]string{"local"}, protocols...) {
		i, known := infos[name]
		switch {
		case !known || i.Summary == "":
			t.Errorf("%s is not known: %+v", name, i)
		case i.Availability.State == transport.Ready:
			if got, err := e.GetTransport(name); err != nil || got.Name() != name || !i.Installed {
				t.Errorf("%s is ready and not installed: %v", name, err)
			}
		default:
			if i.Availability.Code == "" || i.Availability.Reason == "" || i.Availability.Next == "" || i.Installed {
				t.Errorf("%s does not say why it is %s: %+v", name, i.Availability.State, i)
			}
			_, err := e.InstallTransport(name)
			requireFault(t, err, xfer.NotSupportedTransport)
			if !strings.Contains(err.Error(), i.Availability.Reason) {
				t.Errorf("the error has no reason: %v", err)
			}
		}
	}
	if infos["tcp"].Availability.State != transport.Ready || infos["rdma"].Availability.Code != "not-built" {
		t.Errorf("tcp is %+v, rdma is %+v", infos["tcp"], infos["rdma"])
	}
	for _, name := range []string{"pigeon", "", "TCP", "tcp,tcp"} {
		_, err := e.InstallTransport(name)
		requireFault(t, err, xfer.NotSupportedTransport)
	}
}

func TestOpenRefusesATransportThatIsNotThere(t *testing.T) {
	for _, name := range []string{"rdma", "pigeon"} {
		e, err := moonpath.Open(t.Context(), moonpath.Options{Host: "127.0.0.1", Environ: []string{}, Transports: []string{"tcp", name}})
		requireFault(t, err, xfer.NotSupportedTransport)
		if e != nil {
			t.Error("an engine beside the error")
		}
	}
}

func TestMemoryRegisteredBeforeInstallationIsServed(t *testing.T) {
	target, e := openEngine(t, func(o *moonpath.Options) { o.Transports = []string{} }), openEngine(t, nil)
	there, here := alloc(t, target, 4096), alloc(t, e, 4096)
	_, err := e.OpenSegment(target.Name())
	requireFault(t, err, xfer.Metadata) // nothing is published that a peer could use

	installed, err := target.InstallTransport("tcp")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := target.InstallTransport("tcp", "some", "args"); err != nil || again != installed {
		t.Errorf("installed again: %v, %v, want the same transport", again, err)
	}
	b := newBatch(t, e, 1)
	fill(here.Bytes(), 9)
	transfer(t, b, moonpath.Request{Op: moonpath.OpWrite, Pin: pinned(t, e, "tcp"), Local: here.At(0), Len: 4096, Target: open(t, e, target), Remote: uint64(there.At(0))})
	if !bytes.Equal(here.Bytes(), there.Bytes()) {
		t.Error("the bytes are not there")
	}
}

// Traffic goes on while the transport is taken out: whatever was submitted before completes, whatever comes
// later says that there is no way.
func TestUninstallDrainsTraffic(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	const block, count = 256 << 10, 32
	there, here := alloc(t, target, block*count), alloc(t, e, block*count)
	id, pin := open(t, e, target), pinned(t, e, "tcp")
	var submitters sync.WaitGroup
	underWay := make(chan struct{}, 4)
	for range 4 {
		submitters.Go(func() {
			b := newBatch(t, e, count)
			for round := 0; ; round++ {
				submit(t, b, rows(moonpath.OpWrite, pin, here, id, there, count, block)...)
				if round == 0 {
					underWay <- struct{}{}
				}
				if b.Wait(t.Context()) != nil {
					for i := range count {
						s, err := b.Status(i)
						if err != nil || s.State != xfer.Completed && xfer.CodeOf(s.Err) != xfer.NotSupportedTransport {
							t.Errorf("request %d ended as %+v, %v", i, s, err)
						}
					}
					return
				}
			}
		})
	}
	for range 4 {
		<-underWay
	}
	if err := e.UninstallTransport("tcp"); err != nil {
		t.Error(err)
	}
	submitters.Wait()

	b := newBatch(t, e, 1)
	r := rows(moonpath.OpWrite, pin, here, id, there, 1, block)[0]
	submit(t, b, r)
	err := b.Wait(t.Context())
	requireFault(t, err, xfer.NotSupportedTransport)
	if err == nil || !strings.Contains(err.Error(), "installed: want tcp, have not installed") {
		t.Errorf("the reason is not named: %v", err)
	}
	if _, err := e.GetTransport("tcp"); err == nil {
		t.Error("tcp is still installed")
	}
	requireFault(t, e.UninstallTransport("tcp"), xfer.NotSupportedTransport)

	if _, err := e.InstallTransport("tcp"); err != nil {
		t.Fatal(err)
	}
	fill(here.Bytes(), 3)
	transfer(t, b, r)
	if !bytes.Equal(here.Bytes()[:block], there.Bytes()[:block]) {
		t.Error("installed again, it does not carry bytes")
	}
}

func TestExplainNamesEveryPathWithItsReason(t *testing.T) {
	target, e := openEngine(t, nil), openEngine(t, nil)
	id := open(t, e, target)
	rdma := pinned(t, e, "rdma")
	for _, c := range []struct {
		name   string
		pin    moonpath.Pin
		chosen string
		reject map[string]string // path → code of its first reason
	}{
		{"free", moonpath.NoPin, "local", map[string]string{"rdma": "installed"}},
		{"pinned to tcp", pinned(t, e, "tcp"), "tcp", map[string]string{"local": "pin", "rdma": "installed"}},
		{"pinned to what is not there", rdma, "", map[string]string{"local": "pin", "tcp": "pin", "rdma": "installed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := e.Explain(id, moonpath.OpWrite, 1<<20, c.pin)
			if err != nil {
				t.Fatal(err)
			}
			chosen := ""
			if d.Chosen >= 0 {
				chosen = d.Rows[d.Chosen].Path
			}
			if chosen != c.chosen {
				t.Errorf("chose %q, want %q", chosen, c.chosen)
			}
			for _, row := range d.Rows {
				want := c.reject[row.Path]
				if want == "" && len(row.Rejected) > 0 || want != "" && (len(row.Rejected) == 0 || row.Rejected[0].Code != want) {
					t.Errorf("%s was rejected with %v, want %q", row.Path, row.Rejected, want)
				}
			}
		})
	}
}
