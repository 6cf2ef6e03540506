package segment

import (
	"errors"
	"math"
	"net"
	"slices"
	"strconv"

	"github.com/moonpath-io/moonpath/wire/segjson"
	"github.com/moonpath-io/moonpath/xfer"
)

// Desc describes a segment. A draft is filled by Transport.Describe; once published or read it never
// changes.
type Desc struct {
	Name      string
	Protocols []string // all that the owner offers, best known first
	TCP       Endpoint
	Buffers   []Buffer   // sorted by address, disjoint
	Ext       *Extension // the moonpath object; nil for a peer without it
	ExtError  error      // why a moonpath object that was there could not be used
	Gen       uint64     // grows with every change that this process sees
}

// Endpoint is where the TCP data plane of a segment listens.
type Endpoint struct {
	Host    string // bare: no port, no brackets
	Port    uint16 // 0: no TCP data plane
	Version int    // tcp_proto_version; 0 when the descriptor does not say, which means a peer that closes after each exchange
}

// Address returns host and port in the form that net.Dial takes.
func (e Endpoint) Address() string { return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))) }

// Buffer is one entry of the list. A request is cut at the borders of entries.
type Buffer struct {
	Addr, Len uint64
	Location  string
	Protocols []string // transports that serve it
}

// Extension is what moonpath peers tell each other beyond the classic descriptor
// (docs/reference/wire-extension.md).
type Extension struct {
	Incarnation  uint64 // random, new with every start of an engine
	Host         string // hash of the kernel's boot id
	HelloVersion int    // version of the hello on data connections; 0: none
}

// Offers reports whether the owner says that it serves protocol.
func (d *Desc) Offers(protocol string) bool { return slices.Contains(d.Protocols, protocol) }

// Find returns the published buffer that holds the byte at addr, or nil.
func (d *Desc) Find(addr uint64) *Buffer {
	if i, found := d.search(addr); found {
		return &d.Buffers[i]
	}
	return nil
}

// Nearest returns the published buffer that is closest to addr, the one that holds it if there is one; nil if none is
// published.
func (d *Desc) Nearest(addr uint64) *Buffer {
	i, found := d.search(addr)
	switch {
	case len(d.Buffers) == 0:
		return nil
	case found || i == 0:
		return &d.Buffers[i]
	}
	before := &d.Buffers[i-1]
	if i < len(d.Buffers) && d.Buffers[i].Addr-addr < addr-(before.Addr+(before.Len-1)) {
		return &d.Buffers[i]
	}
	return before
}

// Gap returns how many bytes from addr on are in no published buffer; to the end of the address space if no
// buffer follows.
func (d *Desc) Gap(addr uint64) uint64 {
	i, found := d.search(addr)
	switch {
	case found:
		return 0
	case i == len(d.Buffers):
		return math.MaxUint64 - addr
	}
	return d.Buffers[i].Addr - addr
}

// search returns the index of the buffer that holds the byte at addr, else of the first one behind it.
func (d *Desc) search(addr uint64) (index int, found bool) {
	return slices.BinarySearchFunc(d.Buffers, addr, func(b Buffer, a uint64) int {
		switch {
		case b.Addr > a:
			return 1
		case a-b.Addr >= b.Len:
			return -1
		}
		return 0
	})
}

// FromWire converts a decoded descriptor. opened is the name under which it was asked for: the host of
// the data plane is tcp_data_host, else the host of that name (wire spec, section 4.1).
func FromWire(opened string, w *segjson.Descriptor) *Desc {
	d := &Desc{Name: w.Name, Protocols: w.Protocols, ExtError: w.ExtensionError}
	d.TCP = Endpoint{Host: w.TCPDataHost, Port: w.TCPDataPort, Version: w.TCPProtoVersion}
	if d.TCP.Host == "" {
		d.TCP.Host, _ = SplitName(opened)
	}
	if d.TCP.Host == "" {
		d.TCP.Host, _ = SplitName(w.Name)
	}
	if x := w.Moonpath; x != nil {
		d.Ext = &Extension{Incarnation: x.Incarnation, Host: x.Host, HelloVersion: x.HelloVersion}
		d.Protocols = x.Protocols
	}
	d.Buffers = make([]Buffer, len(w.Buffers))
	for i, b := range w.Buffers {
		d.Buffers[i] = Buffer{Addr: b.Addr, Len: b.Length, Location: b.Name, Protocols: w.Protocols}
		if b.Protocol != "" {
			d.Buffers[i].Protocols = []string{b.Protocol}
		}
	}
	if w.Moonpath != nil {
		assignProtocols(d.Buffers, w.Moonpath)
	}
	d.Buffers = disjoint(d.Buffers)
	return d
}

// assignProtocols applies the run-length list of the extension to the buffers in the order of the wire.
func assignProtocols(buffers []Buffer, x *segjson.Extension) {
	i := 0
	for _, run := range x.Runs {
		var served []string
		for bit, p := range x.Protocols {
			if run.Mask>>bit&1 != 0 {
				served = append(served, p)
			}
		}
		for range run.Count {
			if i == len(buffers) {
				return
			}
			buffers[i].Protocols = served
			i++
		}
	}
}

// disjoint sorts buffers and trims overlaps, which published engines accept and publish. Whatever is cut
// at a trimmed border still lies inside one registration of the owner.
func disjoint(buffers []Buffer) []Buffer {
	slices.SortStableFunc(buffers, func(a, b Buffer) int {
		switch {
		case a.Addr < b.Addr:
			return -1
		case a.Addr > b.Addr:
			return 1
		}
		return 0
	})
	kept := buffers[:0]
	for _, b := range buffers {
		if n := len(kept); n > 0 {
			last := kept[n-1].Addr + (kept[n-1].Len - 1)
			if b.Addr <= last {
				if b.Addr+(b.Len-1) <= last {
					continue
				}
				b.Len -= last + 1 - b.Addr
				b.Addr = last + 1
			}
		}
		kept = append(kept, b)
	}
	return kept
}

// ToWire converts a description for publication. Every buffer carries the segment's name, as TCP segments
// of the published engine do.
func (d *Desc) ToWire() *segjson.Descriptor {
	w := &segjson.Descriptor{
		Name: d.Name, Protocols: d.Protocols[:min(1, len(d.Protocols))],
		TCPDataHost: d.TCP.Host, TCPDataPort: d.TCP.Port, TCPProtoVersion: d.TCP.Version,
		Buffers: make([]segjson.Buffer, len(d.Buffers)),
	}
	for i, b := range d.Buffers {
		w.Buffers[i] = segjson.Buffer{Name: d.Name, Addr: b.Addr, Length: b.Len}
	}
	if d.Ext != nil {
		w.Moonpath = &segjson.Extension{Schema: segjson.ExtensionSchema, Min: segjson.ExtensionMin,
			Incarnation: d.Ext.Incarnation, Host: d.Ext.Host, Protocols: d.Protocols,
			HelloVersion: d.Ext.HelloVersion, Runs: d.runs()}
	}
	return w
}

func (d *Desc) runs() []segjson.BufferRun {
	var runs []segjson.BufferRun
	for _, b := range d.Buffers {
		var mask uint64
		for bit, p := range d.Protocols {
			if slices.Contains(b.Protocols, p) {
				mask |= 1 << bit
			}
		}
		if n := len(runs); n > 0 && runs[n-1].Mask == mask {
			runs[n-1].Count++
		} else {
			runs = append(runs, segjson.BufferRun{Count: 1, Mask: mask})
		}
	}
	return runs
}

// notAvailable is the fault for a peer whose descriptor cannot be had. What the directory says stands, if it
// says it in full.
func notAvailable(name string, cause error) *xfer.Fault {
	var f *xfer.Fault
	if errors.As(cause, &f) {
		return f
	}
	code := xfer.CodeOf(cause)
	if code == xfer.Context {
		code = xfer.Metadata
	}
	return &xfer.Fault{Code: code, Stage: xfer.StageResolve, Peer: name, Cause: cause, Retry: xfer.Refresh}
}
