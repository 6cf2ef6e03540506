package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/moonpath-io/moonpath/config"
	"github.com/moonpath-io/moonpath/segment"
)

type segmentCmd struct {
	Name string `arg:"" name:"name" help:"The segment: HOST:PORT of the peer's control port."`
	Host string `name:"host" default:"127.0.0.1" help:"Address of the tool's own engine; it binds no other."`
}

// Help is the part of the help that examples need.
func (*segmentCmd) Help() string {
	return `Fetches the descriptor anew and shows what the peer offers: protocols, data port, buffers, and whether it is a
moonpath peer.

Examples:

    moonpath segment 127.0.0.1:15123
    moonpath segment 127.0.0.1:15123 --json | jq '.buffers[0].addr'`
}

// segmentView is the descriptor as scripts see it.
type segmentView struct {
	Segment   string        `json:"segment"` // as asked for
	Name      string        `json:"name"`    // as the owner calls itself
	Protocols []string      `json:"protocols"`
	TCP       *tcpView      `json:"tcp,omitempty"`
	Buffers   []bufferView  `json:"buffers"`
	Moonpath  *moonpathView `json:"moonpath,omitempty"` // absent for other engines
	Unusable  string        `json:"moonpath_unusable,omitempty"`
}

type tcpView struct {
	Host    string `json:"host"`
	Port    uint16 `json:"port"`
	Version int    `json:"version"`
}

type bufferView struct {
	Addr      uint64   `json:"addr"`
	Length    uint64   `json:"length"`
	Location  string   `json:"location"`
	Protocols []string `json:"protocols"`
}

type moonpathView struct {
	Incarnation  string `json:"incarnation"` // hexadecimal: it does not fit the numbers of JSON readers
	Host         string `json:"host"`
	HelloVersion int    `json:"hello_version"`
}

// Run prints the descriptor.
func (c *segmentCmd) Run(a *app) error {
	return a.withPeer(peerFlags{Segment: c.Name, Host: c.Host}, func(p *peer) error {
		v := newSegmentView(c.Name, p.desc)
		return a.emit(v, v.text)
	})
}

func newSegmentView(asked string, d *segment.Desc) *segmentView {
	v := &segmentView{Segment: asked, Name: d.Name, Protocols: d.Protocols, Buffers: make([]bufferView, len(d.Buffers))}
	if d.TCP.Port != 0 {
		v.TCP = &tcpView{d.TCP.Host, d.TCP.Port, d.TCP.Version}
	}
	for i, b := range d.Buffers {
		v.Buffers[i] = bufferView{b.Addr, b.Len, b.Location, b.Protocols}
	}
	if d.Ext != nil {
		v.Moonpath = &moonpathView{strconv.FormatUint(d.Ext.Incarnation, 16), d.Ext.Host, d.Ext.HelloVersion}
	}
	if d.ExtError != nil {
		v.Unusable = d.ExtError.Error()
	}
	return v
}

func (v *segmentView) text(w io.Writer) {
	fmt.Fprintf(w, "segment\t%s\n", v.Segment)
	if v.Name != v.Segment {
		fmt.Fprintf(w, "calls itself\t%s\n", v.Name)
	}
	fmt.Fprintf(w, "protocols\t%s\n", strings.Join(v.Protocols, ", "))
	if v.TCP != nil {
		fmt.Fprintf(w, "tcp\t%s, protocol version %d\n", segment.JoinName(v.TCP.Host, v.TCP.Port), v.TCP.Version)
	}
	switch {
	case v.Moonpath != nil:
		fmt.Fprintf(w, "moonpath\tincarnation %s, host %s, hello version %d\n", v.Moonpath.Incarnation, v.Moonpath.Host, v.Moonpath.HelloVersion)
	case v.Unusable != "":
		fmt.Fprintf(w, "moonpath\tits extension cannot be used: %s\n", v.Unusable)
	default:
		fmt.Fprintf(w, "moonpath\tno: another engine\n")
	}
	fmt.Fprintf(w, "buffers\t%d\n", len(v.Buffers))
	for i, b := range v.Buffers {
		fmt.Fprintf(w, "buffer %d\t%s  %s  %s\n", i, hex(b.Addr), config.FormatSize(b.Length), strings.Join(b.Protocols, ", "))
	}
}
